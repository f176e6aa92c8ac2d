"""Evaluation sets as people write them: in a task file, or on the command line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmark.base.errors import UserError
from benchmark.base.schema import build, identity
from benchmark.config.evaluation import CORRUPTIONS, SEVERITIES, EvaluationConfig, read_evaluation, set_name
from benchmark.config.load import command_set, load_task
from benchmark.jobs.job import Evaluated, Job
from tests.conftest import TINY

FOG = '[[evaluate]]\nkind = "corruptions"\nname = "foggy"\nkinds = ["Fog"]\nseverities = [3, 1, 3]\n'
NEW = '[[evaluate]]\nkind = "new"\nimages = "others"\nshare = 0.25\n'


def write_task(path: Path, *sets: str, text: str = TINY) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "".join(sets))
    return str(path)


class TestTaskFile:
    def test_a_table_for_each_set(self, tmp_path: Path) -> None:
        foggy, new = load_task(write_task(tmp_path / "a.toml", FOG, NEW)).evaluate
        assert (foggy.used_kinds, foggy.used_severities) == (("fog",), (1, 3))
        assert (new.kind, new.images, new.share) == ("new", "others", 0.25)
        assert [set_name(foggy), set_name(new)] == ["foggy", "new-others"]

    def test_all_corruptions_where_none_is_named(self) -> None:
        every = EvaluationConfig("corruptions")
        assert (every.used_kinds, every.used_severities) == (CORRUPTIONS, SEVERITIES)
        assert len(CORRUPTIONS) == 16

    def test_the_list_of_a_child_replaces_that_of_its_parent(self, tmp_path: Path) -> None:
        write_task(tmp_path / "parent.toml", FOG)
        heir = write_task(tmp_path / "heir.toml", text='extends = "parent"\nepochs = 5\n')
        other = write_task(tmp_path / "other.toml", NEW, text='extends = "parent"\n')
        none = write_task(tmp_path / "none.toml", text='extends = "parent"\nevaluate = []\n')
        names = [[set_name(each) for each in load_task(task).evaluate] for task in (heir, other, none)]
        assert names == [["foggy"], ["new-others"], []]

    def test_paths_are_relative_to_the_file_that_has_them(self, tmp_path: Path) -> None:
        """Also to that of a parent in another folder. Names of tasks stay names."""
        (tmp_path / "far" / "house").mkdir(parents=True)
        sets = [
            f'[[evaluate]]\nname = "s{number}"\nkind = "shift"\nimages = "{images}"\n'
            for number, images in enumerate(("house", "sub/x", "x.npz", "/abs/x", "my.toml", "svhn", "Fashion_MNIST"))
        ]
        sets.append('[[evaluate]]\nkind = "humans"\nfile = "counts.csv"\n')
        write_task(tmp_path / "far" / "parent.toml", *sets)
        here = tmp_path / "near"
        child = write_task(here / "child.toml", text=f'extends = "{tmp_path}/far/parent.toml"\n')
        (here / "svhn").mkdir()
        *shifts, humans = load_task(child).evaluate
        far = f"{tmp_path}/far/"
        expected = [far + "house", far + "sub/x", far + "x.npz", "/abs/x", far + "my.toml", "svhn", "Fashion_MNIST"]
        assert [each.images for each in shifts] == expected
        assert humans.file == far + "counts.csv"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('kind = "corruption"', "unknown value of .*evaluate: kind: 'corruption': did you mean 'corruptions'"),
            ('name = "x"', "evaluate: 'kind' is missing"),
            ('kind = "new"\nimage = "svhn"', "unknown key in .*evaluate: 'image': did you mean 'images'"),
            ('kind = "new"\nimages = ["svhn"]', "evaluate: images: expected text, got"),
            ('kind = "new"\nshare = 1', "share must lie between 0 and 1, got 1"),
            ('kind = "new"\nshare = nan', "share: expected a number from .*, got nan"),
            ('kind = "new"\nfile = "x.npz"', "file belongs to humans and groups|file belong"),
            ('kind = "shift"', "'shift' needs images: a task, folder or file"),
            ('kind = "shift"\nimages = "svhn"\nseverities = [1]', "severities belong"),
            ('kind = "shift"\nimages = "svhn"\nshare = 0.3', "share belong"),
            ('kind = "humans"', "'humans' needs a file of label counts"),
            ('kind = "groups"', r"'groups' needs columns \(attributes\) or a file"),
            ('kind = "corruptions"\nkinds = ["fgo"]', "unknown corruption 'fgo': did you mean 'fog'"),
            ('kind = "corruptions"\nkinds = [3]', "kinds: expected text, got 3"),
            ('kind = "corruptions"\nseverities = [6]', "severities: expected a whole number from 1 to 5, got 6"),
            ('kind = "corruptions"\nname = "a/b"', "name 'a/b' cannot be the name of a folder"),
            ('kind = "corruptions"\nname = ".."', "name '..' cannot be the name of a folder"),
            (f'kind = "corruptions"\nname = "{"x" * 101}"', "cannot be the name of a folder"),
            ('kind = "corruptions"\nname = "None"', "name 'None' means something else on the command line"),
            ('kind = "corruptions"\nname = "humans"', "name 'humans' means something else on the command line"),
        ],
    )
    def test_what_is_wrong_with_a_table(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(UserError, match=message):
            load_task(write_task(tmp_path / "a.toml", f"[[evaluate]]\n{text}\n"))

    @pytest.mark.parametrize("text", ['evaluate = "corruptions"', "evaluate = 3", '[evaluate]\nkind = "corruptions"'])
    def test_something_else_than_a_list_of_tables(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(UserError, match=r"evaluate: expected a (table|list), got"):
            load_task(write_task(tmp_path / "a.toml", text=f"{text}\n{TINY}" if "[" not in text else f"{TINY}{text}\n"))

    @pytest.mark.parametrize(
        "twice", [FOG + FOG, FOG + FOG.replace("foggy", "FOGGY"), NEW + NEW.replace('"others"', '"a/others.npz"')]
    )
    def test_a_set_named_twice(self, tmp_path: Path, twice: str) -> None:
        with pytest.raises(UserError, match=r"a set named twice: '(?i:foggy|new-others)'; give one"):
            load_task(write_task(tmp_path / "a.toml", twice))


class TestCommandLine:
    @pytest.mark.parametrize(
        ("text", "fields"),
        [
            ("corruptions", {}),
            ("Corruptions=Fog, gaussian_noise", {"kinds": ("fog", "gaussian noise")}),
            ("shift=svhn", {"images": "svhn"}),
            ("new", {}),
            ("new = a=b.npz", {"images": "a=b.npz"}),
            ("humans=x.npz", {"file": "x.npz"}),
            ("groups=Male,Young", {"columns": ("Male", "Young")}),
            ("groups=x.csv", {"file": "x.csv"}),
            ("groups=a/x", {"file": "a/x"}),
        ],
    )
    def test_what_a_text_means(self, text: str, fields: dict[str, Any]) -> None:
        kind = text.partition("=")[0].strip().lower()
        assert read_evaluation(text) == EvaluationConfig(kind, **fields)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("corrupt", "unknown kind of evaluation set 'corrupt': did you mean 'corruptions'"),
            ("corruptions=", "--evaluate corruptions=: expected corruptions or corruptions=KIND,KIND"),
            ("corruptions=fog,jpg", "unknown corruption 'jpg': did you mean 'jpeg'"),
            ("shift", "--evaluate shift: a set of kind 'shift' needs images"),
            ("shift=", r"expected shift=TASK\|FOLDER\|FILE.npz"),
            ("humans", "needs a file of label counts"),
            ("groups", "needs columns"),
            ("", "unknown kind of evaluation set ''"),
        ],
    )
    def test_what_none_means(self, text: str, message: str) -> None:
        with pytest.raises(UserError, match=message):
            read_evaluation(text)

    def test_paths_are_relative_to_the_current_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "house").mkdir()
        (tmp_path / "svhn").mkdir()
        texts = ("shift=house", "shift=.", "shift=./svhn", "shift=svhn", "new=nothere", "new", "new=" + "x" * 300)
        found = [command_set(text).images for text in texts]
        assert found == [f"{tmp_path}/house", str(tmp_path), f"{tmp_path}/svhn", "svhn", "nothere", "", "x" * 300]
        assert command_set("humans=x.npz").file == str(tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"kind": "shift", "images": "/data/CIFAR-10-C"}, "CIFAR-10-C"),
        ({"kind": "shift", "images": "/data/imagenet v2/"}, "imagenet-v2"),
        ({"kind": "shift", "images": "/data/v2.1"}, "v2.1"),
        ({"kind": "new", "images": "my/own.toml"}, "new-own"),
        ({"kind": "new", "images": ".npz"}, "new-npz"),
        ({"kind": "new", "images": "/"}, "new"),
        ({"kind": "shift", "images": "x" * 300}, "x" * 100),
        ({"kind": "new"}, "new"),
        ({"kind": "humans", "file": "a/counts.npz"}, "humans"),
        ({"kind": "groups", "columns": ["Male"]}, "groups"),
        ({"kind": "groups", "columns": ["Male"], "name": "by-sex"}, "by-sex"),
    ],
)
def test_what_a_set_is_called(fields: dict[str, Any], name: str) -> None:
    assert set_name(build(EvaluationConfig, fields, "x")) == name


class TestIdentity:
    """The hash of a set says which images it has; so the id of a job does not change with how they are written down."""

    job = Job(load_task("digits"), "some_method", {}, "images", None, seed=0)

    def id(self, sha256: str = "a", name: str = "x", **fields: Any) -> str:
        config = build(EvaluationConfig, {"kind": "new", **fields}, "x")
        return replace(self.job, evaluates=Evaluated(name, config, sha256)).id

    def test_an_evaluation_is_another_job(self) -> None:
        assert len({self.job.id, self.id(), self.id("b"), self.id(kind="corruptions"), self.id(share=0.25)}) == 5

    def test_places_and_names_do_not_matter(self) -> None:
        assert self.id() == self.id(name="y") == self.id(images="a") == self.id(share=0.5)
        fog, jpeg_too = ["fog"], ["jpeg", "fog"]
        assert self.id(kind="corruptions", kinds=fog) == self.id(kind="corruptions", kinds=jpeg_too, severities=[1])

    def test_sets_of_a_task_and_no_classes_left_out_leave_its_ids_alone(self) -> None:
        task = self.job.task
        tried = replace(task, evaluate=(EvaluationConfig("new"),))
        assert replace(self.job, task=tried).id == self.job.id
        assert "leave_out" not in identity(task)["data"]
        without = [replace(task, data=replace(task.data, leave_out=classes)) for classes in ((3,), (3, 5))]
        assert len({self.job.id, *(replace(self.job, task=each).id for each in without)}) == 3
