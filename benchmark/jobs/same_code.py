"""Code that computes the same bits as earlier code goes by the earlier hash: a move makes no result stale.

An entry holds for exactly this code, so that the next change to it ends it. Add one only where `diff` has found the
runs of both versions equal to the bit.
"""

SAME_CODE: dict[str, str] = {
    # the core
    "b55b47a1c869": "aaa80df515fc",
    # the files of methods/, in the order of their names
    "377499c173dd": "c8cf645d527b",
    "41251f343ab9": "077147090795",
    "305ceb4d17f2": "87b7a05fabff",
    "629f0b6ee6d5": "1edc707dbcd7",
    "9797f4df725b": "5a62cf3564d3",
    "f19cd765358c": "ad79b7dd6ef2",
    "579c77394492": "828e5c879508",
    "f56338e45655": "6a7b5752ffe7",
    "7cf53a39abac": "3846152a35f0",
    "69e2ac9ec47c": "452a7ccb6c59",
    "766ebcaa6f51": "9953a5b2b3bc",
    "7174b90a8147": "f03cd2319cb8",
    "2466fe78003f": "d1f9d2a46b05",
    "d8d4b817be11": "6791df67a3c5",
    "1ae22b0ea7b6": "e8cad3c34731",
    "7dbd0e274440": "87eb9815f8db",
    "08e467e841bc": "4593410bf2c3",
    "18e47142ebcb": "d7d46b25c185",
    "81564ddd8069": "62c18c61ec83",
    "7d263f2669a8": "20501f0c5468",
}
"""Hash of the code as it is → hash that its results go by."""
