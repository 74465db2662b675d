"""Why a reply gives no value."""

from __future__ import annotations

EMPTY = "empty"  # nothing is left apart from the thinking
NOTHING_OFFERED = "nothing_offered"  # no verdict in any recognised form
AMBIGUOUS = "ambiguous"  # several that differ
OUT_OF_RANGE = "out_of_range"
OTHER_SCALE = "other_scale"  # a number on a scale that ends elsewhere
RANGE = "range"  # 7-8
NOT_A_NUMBER = "not_a_number"  # begins like one: 8 tests
NOT_WHOLE = "not_whole"
OFF_STEP = "off_step"
UNKNOWN_LABEL = "unknown_label"
CUT_OFF = "cut_off"  # no verdict before the token limit
REFUSAL = "refusal"  # refused or filtered, as the server says
NO_MAJORITY = "no_majority"  # no value has more than half of the votes
