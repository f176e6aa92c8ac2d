"""Code that computes the same bits as earlier code goes by the earlier hash: a move makes no result stale.

An entry holds for exactly this code, so that the next change to it ends it. Add one only where `diff` has found the
runs of both versions equal to the bit.
"""

SAME_CODE: dict[str, str] = {
    # the core
    "847582ee251e": "aaa80df515fc",
    # the files of methods/, in the order of their names
    "377499c173dd": "c8cf645d527b",
    "41251f343ab9": "077147090795",
    "305ceb4d17f2": "87b7a05fabff",
    "cd2025bffcbd": "1edc707dbcd7",
    "579c77394492": "828e5c879508",
    "a5fde570fcb1": "6a7b5752ffe7",
    "14169487d141": "3846152a35f0",
    "69e2ac9ec47c": "452a7ccb6c59",
    "766ebcaa6f51": "9953a5b2b3bc",
    "7174b90a8147": "f03cd2319cb8",
    "53279e006fcc": "e8cad3c34731",
    "a89a742f5779": "87eb9815f8db",
    "43fd8060dde9": "4593410bf2c3",
    "18e47142ebcb": "d7d46b25c185",
    "81564ddd8069": "62c18c61ec83",
    "191bed54ab5e": "20501f0c5468",
}
"""Hash of the code as it is → hash that its results go by."""
