"""Read npz and npy files. Large arrays are mapped into memory where the format allows it; pickles are never loaded."""

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Container
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from benchmark.base.errors import UserError, brief

MAPPED_BYTES = 2**20
"""Smaller arrays are read at once."""
LOCAL_HEADER = struct.Struct("<26xHH")
"""Of a file in a zip: lengths of its name and of its extra fields, which its content follows."""
Array = NDArray[Any]


def read_npz(path: Path, wanted: Container[str] | None = None) -> dict[str, Array]:
    """Return the arrays of a file by name, or those that are wanted: stored ones mapped, compressed ones read."""
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            names = [name for name in members if wanted is None or name in wanted]
            return {name: read_member(path, archive, members[name], file) for name in names}
    except (zipfile.BadZipFile, EOFError, ValueError, zlib.error) as error:
        raise UserError(f"'{path}' is no npz file that can be read ({brief(error)})") from None


def read_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: BinaryIO) -> Array:
    if info.compress_type == zipfile.ZIP_STORED and info.file_size > MAPPED_BYTES:
        file.seek(info.header_offset)
        header = file.read(LOCAL_HEADER.size)
        file.seek(info.header_offset + LOCAL_HEADER.size + sum(LOCAL_HEADER.unpack(header)))
        return mapped(path, file, info.filename)
    with archive.open(info) as member:
        return read_array(member, f"'{path}': {info.filename.removesuffix('.npy')}")


def read_npy(path: Path) -> Array:
    """Return the array of a file, mapped into memory."""
    try:
        with path.open("rb") as file:
            if path.stat().st_size > MAPPED_BYTES:
                return mapped(path, file, path.name)
            return read_array(file, f"'{path}'")
    except (ValueError, EOFError) as error:
        raise UserError(f"'{path}' is no npy file that can be read ({brief(error)})") from None


def mapped(path: Path, file: BinaryIO, name: str) -> Array:
    """Return the array that begins where the file stands, mapped into memory."""
    version = npy.read_magic(file)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read_header is None:
        raise UserError(f"'{path}': {name} has version {version} of the npy format; save it again with numpy.save")
    shape, is_fortran, dtype = read_header(file)
    refuse_objects(dtype, f"'{path}': {name.removesuffix('.npy')}")
    order = "F" if is_fortran else "C"
    return np.memmap(path, dtype, "r", file.tell(), shape, order)  # type: ignore[call-overload,no-any-return]


def read_array(file: Any, where: str) -> Array:
    """Return an array that is read at once."""
    try:
        return np.asarray(npy.read_array(file, allow_pickle=False))
    except ValueError as error:
        if "Object arrays" in str(error):
            refuse_objects(np.dtype(object), where)
        raise


def refuse_objects(dtype: np.dtype[Any], where: str) -> None:
    if dtype.hasobject:
        raise UserError(
            f"{where} is an array of Python objects, which only pickle can store, and pickles are never loaded; "
            "save numbers or text, e.g. numpy.asarray(values, dtype=float)"
        )


def file_sha256(*paths: Path) -> str:
    """Return the SHA-256 of a file; of several, that of their hashes one after the other."""
    hashes = []
    for path in paths:
        with path.open("rb") as file:
            hashes.append(hashlib.file_digest(file, "sha256").hexdigest())
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
