//! What a client tells its model about the server.
//!
//! Clients cut: all keep 2,000 characters, some read only the first 512. So each text begins with a paragraph of exactly 512
//! characters that says all one must know, and what follows it may be missing.

use crate::execute::name_list;
use crate::limits::{MOST_CHARACTERS, fit};
use crate::toolbox::Toolbox;

/// Where the first paragraph ends, its line breaks included.
#[cfg(test)]
const HEAD: usize = 512;

const CODE_HEAD: &str = "\
This server has one tool, execute. It runs a short JavaScript program that calls tools as await \
tools.<plugin>.<tool>(input), so one call can chain, repeat and filter many. Return what you want to read. The description \
of its argument code lists the tools with their schemas; in a program, tools.$search({query}) and \
tools.$describe(\"plugin.tool\") tell more. A failed call rejects with an Error. Calls made together with Promise.all run \
together. A program has the language alone: no files, network, or timers.\n\n";

const SEPARATE_HEAD: &str = "\
Each tool of this server stands for itself, and its description says what it does and when to use it. Relative paths start \
in the working directory of the server, and results name paths in the same form. A result that was cut says so, and tells how to \
get the rest, usually by calling again with its next_offset. Any error begins with its category, and its text says what to do \
next. Tools that are marked read-only change nothing; every other tool may, so make sure that a change is wanted before you call it.\n\n";

/// The instructions of a server that runs programs.
pub(super) fn code(toolbox: &Toolbox) -> String {
    let lead = format!("{CODE_HEAD}Tools: ");
    let room = MOST_CHARACTERS.saturating_sub(lead.chars().count());
    format!("{lead}{}", name_list(&toolbox.shelf().catalogue, room))
}

/// The instructions of a server that offers each tool by itself.
pub(super) fn separate(toolbox: &Toolbox) -> String {
    let shelf = toolbox.shelf();
    fit(&format!("{SEPARATE_HEAD}Tools: {}", shelf.names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_ends_with_a_sentence_where_clients_cut() {
        for head in [CODE_HEAD, SEPARATE_HEAD] {
            assert_eq!(head.chars().count(), HEAD, "{head}");
            assert!(head.ends_with(".\n\n"));
        }
    }
}
