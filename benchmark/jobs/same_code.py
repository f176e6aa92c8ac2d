"""Code that computes the same bits as earlier code goes by the earlier hash: a move makes no result stale.

An entry holds for exactly this code, so that the next change to it ends it. Add one only where `diff` has found the
runs of both versions equal to the bit.
"""

SAME_CODE: dict[str, str] = {}
"""Hash of the code as it is → hash that its results go by."""
