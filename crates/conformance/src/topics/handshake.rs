//! The process and its first line.

use crate::requirement::requirements;

requirements! {
    NO_COOKIE = "HANDSHAKE-01" Must
        "It does not run without the cookie",
        "exit code 1, a line for a person on stderr, nothing on stdout";
    WRONG_COOKIE = "HANDSHAKE-02" Must
        "It does not run with another cookie",
        "exit code 1, a line for a person on stderr, nothing on stdout";
    READY = "HANDSHAKE-03" Must
        "With only PATH, HOME and TMPDIR it prints one handshake line and serves where the line says",
        "1|1|unix|<path>|grpc as the first line of stdout, and a server that accepts connections there";
    SILENT_STDOUT = "HANDSHAKE-04" Must
        "It writes nothing to stdout after the handshake line",
        "no byte, through a whole session";
    VERSION = "HANDSHAKE-05" Must
        "It answers a host that offers only unknown protocol versions with its own",
        "a handshake line with version 1, which the host then refuses";
    TWICE = "HANDSHAKE-06" Must
        "Several copies can run at once",
        "a second process that starts and answers while the first one runs";
    FOREIGN_SERVICE = "HANDSHAKE-07" Must
        "It answers services it does not serve with UNIMPLEMENTED",
        "UNIMPLEMENTED for Describe of the model service, which hosts ask to find the category";
    HEALTH = "HANDSHAKE-08" Should
        "It serves the standard health service for the name plugin",
        "SERVING";
    LOG_LINES = "HANDSHAKE-09" Must
        "JSON lines on stderr have texts as @level, @message and @timestamp",
        "strings: anything else panics the host library";
    STDIN = "HANDSHAKE-10" Must
        "It leaves its standard input alone",
        "nothing read from it: it is that of the host";
    ENCRYPTED = "HANDSHAKE-11" Must
        "It does not serve a host in the clear that asks for TLS",
        "with PLUGIN_CLIENT_CERT its own certificate in the handshake line, or an end without a line";
    MULTIPLEXED = "HANDSHAKE-12" Should
        "It tells a host that asks for multiplexing whether it does that",
        "with PLUGIN_MULTIPLEX_GRPC true or false as the seventh field of the handshake line";
    AFTER_KILL = "HANDSHAKE-13" Must
        "It starts where it was killed before",
        "an answer from a second process with the home and the files of one that was killed";
}
