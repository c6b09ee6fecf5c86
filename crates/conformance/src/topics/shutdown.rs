//! The end of the process.

use crate::requirement::requirements;

requirements! {
    EXITS = "SHUTDOWN-01" Must
        "It leaves when told to",
        "exit code 0 within 2 s of Shutdown";
    CLEAN = "SHUTDOWN-02" Must
        "It takes its processes with it",
        "no process of its own after it has left";
    SOCKET = "SHUTDOWN-03" Must
        "It removes its socket",
        "no file at the address of the handshake line";
    BUSY = "SHUTDOWN-04" Must
        "A running call does not keep it",
        "exit within 2 s of Shutdown while a call runs";
    TERMINATED = "SHUTDOWN-05" Must
        "SIGTERM ends it",
        "exit within 2 s";
    INTERRUPTED = "SHUTDOWN-06" Must
        "SIGINT does not end it",
        "an answer after SIGINT: Ctrl-C in a terminal reaches it too, and the host decides";
    HOST_GONE = "SHUTDOWN-07" Must
        "It leaves when its host is gone",
        "exit within 5 s of the loss of every connection";
    CALL_ENDS = "SHUTDOWN-08" Must
        "Nothing of a call outlives the process",
        "no process that the call started, after Shutdown, SIGTERM and the loss of the host";
    KILLED = "SHUTDOWN-09" Must
        "Nothing of a call outlives a process that is killed",
        "within 5 s of SIGKILL no process that the call started";
}
