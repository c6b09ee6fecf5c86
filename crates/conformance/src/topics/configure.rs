//! What the provider can be configured with.

use crate::requirement::requirements;

requirements! {
    ACCEPTED = "CONFIGURE-01" Must
        "A right configuration is accepted",
        "an answer to Configure with the configuration of the calls file";
    NULL = "CONFIGURE-02" Must
        "Null stands for an absent attribute",
        "the right configuration accepted with null for every attribute it leaves out, as the kernel sends it";
    MISSING = "CONFIGURE-03" Must
        "A missing attribute is refused in Configure, not in the first call",
        "a status for a configuration without a required attribute";
    WRONG_TYPE = "CONFIGURE-04" Must
        "A value of another type is refused",
        "a status for every attribute that is given a value of another type";
    UNKNOWN = "CONFIGURE-05" Should
        "An unknown attribute is refused",
        "a status";
    CODE = "CONFIGURE-06" Must
        "A refusal says that the configuration is wrong",
        "INVALID_ARGUMENT for a missing attribute or one of another type";
    NAMED = "CONFIGURE-07" Must
        "A refusal names the attribute",
        "its name in the message";
    ALL_NAMED = "CONFIGURE-08" Should
        "A refusal names every wrong attribute",
        "all names in one message when several are wrong";
    DETAIL = "CONFIGURE-09" Should
        "A refusal carries its category for programs",
        "google.rpc.ErrorInfo with the category as reason among the details";
    REFUSED = "CONFIGURE-10" Must
        "What the calls file says is wrong is refused",
        "a status that mentions what the calls file lists";
    REFUSED_CODE = "CONFIGURE-11" Must
        "A refusal is no crash",
        "for what the calls file says is wrong a code that is neither UNKNOWN nor UNAVAILABLE";
}
