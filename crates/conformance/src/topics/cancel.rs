//! Calls that are ended from outside.

use crate::requirement::requirements;

requirements! {
    NOTHING_LEFT = "CANCEL-01" Must
        "Nothing of a cancelled call survives",
        "within 10 s no process that the call started";
    USABLE = "CANCEL-02" Must
        "The provider is usable after a cancelled call",
        "another call that ends as usual";
    AT_ONCE = "CANCEL-03" Must
        "Nothing of a call that is cancelled at once survives",
        "within 10 s no process that the call started, and another call that ends as usual";
    NO_RESULT = "CANCEL-04" Must
        "A cancelled call does not claim success",
        "a stream that ends without a result after CallControl.Cancel, within 10 s";
    REPORT = "CANCEL-05" Must
        "A cancelled resource reports what had happened",
        "an output chunk or a partial result before the stream closes after CallControl.Cancel";
    DEADLINE = "CANCEL-06" Must
        "Nothing of a call survives its deadline",
        "within 10 s after the deadline no process that the call started";
    OWN_TIMEOUT = "CANCEL-07" Should
        "A call ends itself before its deadline",
        "the error TIMEOUT, before the deadline has passed: the host hears nothing after it";
}
