//! What calls would do.

use crate::requirement::requirements;

requirements! {
    SHOWN = "PREVIEW-01" May
        "Resources show what a call would do",
        "a tree for a listed call of a resource";
    PROBE = "PREVIEW-02" Must
        "Whether there is a preview is answered without arguments and context",
        "an answer within 5 s: UNIMPLEMENTED, or anything else that is not UNAVAILABLE";
    CONSISTENT = "PREVIEW-03" Must
        "The answer to the probe holds for every call",
        "UNIMPLEMENTED to a call exactly where the probe was answered so";
    TREE = "PREVIEW-04" Must
        "A preview is a whole tree",
        "a root, and at every node one of the known kinds";
    TEXTS = "PREVIEW-05" Must
        "A preview shows what the calls file says it shows",
        "every text of preview in some node";
    UNCHANGED = "PREVIEW-06" Must
        "A preview changes nothing",
        "the same names, bytes, modes and times in the scratch root, the home and the places for state";
    UNTOUCHED = "PREVIEW-07" Must
        "A preview touches nothing, not even for a moment",
        "no file made, removed, or opened for writing meanwhile";
    OFFLINE = "PREVIEW-08" Must
        "A preview opens no connection",
        "no packet and no attempt to send one, in a network namespace of its own";
    NO_PROCESS = "PREVIEW-09" Must
        "A preview leaves no process",
        "the same processes after it";
    CODE = "PREVIEW-10" Must
        "A preview that cannot be made says why",
        "for wrong arguments the status INVALID_ARGUMENT; never UNKNOWN or UNAVAILABLE";
}
