//! Where secrets must not appear.

use crate::requirement::requirements;

requirements! {
    ANSWERS = "SECRET-01" Must
        "A secret of the configuration is in nothing it answers",
        "no event, result, error, preview, picture or status with the value of a sensitive attribute";
    LOGS = "SECRET-02" Must
        "A secret of the configuration is in nothing it logs",
        "no line of its output and no callback with the value of a sensitive attribute";
    COMMANDS = "SECRET-03" Must
        "A secret of the configuration is on no command line",
        "no process of the provider's with the value of a sensitive attribute among its arguments";
    ENVIRONMENT = "SECRET-04" Must
        "What its environment happens to hold is not passed on",
        "no process of another program with a variable that only the provider was given";
}
