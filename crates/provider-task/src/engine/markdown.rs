//! A list as Markdown, for people and for documents.

use std::collections::BTreeMap;

use crate::engine::plan::List;
use crate::engine::task::{Status, Task};

/// The list as nested items with checkboxes. Parts stand below what they are a part of; a part whose parent is not in the
/// list stands at the top.
pub fn markdown(list: &List) -> String {
    let mut parts: BTreeMap<Option<u64>, Vec<&Task>> = BTreeMap::new();
    for task in list.values() {
        let parent = task.parent.filter(|parent| list.contains_key(parent));
        parts.entry(parent).or_default().push(task);
    }
    let below = |parent: Option<u64>, depth: usize| {
        parts.get(&parent).into_iter().flatten().rev().map(move |task| (*task, depth))
    };
    let mut text = String::new();
    let mut open: Vec<(&Task, usize)> = below(None, 0).collect();
    while let Some((task, depth)) = open.pop() {
        write(&mut text, task, depth);
        open.extend(below(Some(task.id), depth + 1));
    }
    text
}

fn write(text: &mut String, task: &Task, depth: usize) {
    let indent = "  ".repeat(depth);
    let title = escaped(&task.title);
    let item = match task.status {
        Status::Pending => format!("[ ] {title}"),
        Status::InProgress => format!("[ ] **{title}** (in progress)"),
        Status::Completed => format!("[x] {title}"),
        Status::Cancelled => format!("[x] ~~{title}~~ (cancelled)"),
    };
    text.push_str(&format!("{indent}- {item} #{}", task.id));
    if !task.depends_on.is_empty() {
        let first: Vec<String> = task.depends_on.iter().map(|id| format!("#{id}")).collect();
        text.push_str(&format!(", after {}", first.join(", ")));
    }
    text.push('\n');
    for line in task.description.lines() {
        text.push_str(format!("{indent}  {line}").trim_end());
        text.push('\n');
    }
    for file in &task.files {
        text.push_str(&format!("{indent}  changed `{file}`\n"));
    }
}

/// A title that reads as itself.
fn escaped(title: &str) -> String {
    let mut escaped = String::with_capacity(title.len());
    for letter in title.chars() {
        if matches!(letter, '\\' | '`' | '*' | '_' | '~' | '[' | ']' | '<' | '>' | '#') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan::{NewTask, add};

    #[test]
    fn parts_stand_below_with_their_state() {
        let task = |title: &str, status, parent: Option<&str>, depends_on: &[&str]| NewTask {
            title: title.to_owned(),
            status,
            parent: parent.map(str::to_owned),
            depends_on: depends_on.iter().map(|&name| name.to_owned()).collect(),
            ..NewTask::default()
        };
        let mut list = List::new();
        let new = [
            task("build *it*", Status::InProgress, None, &[]),
            task("ship", Status::Pending, None, &["#1", "#3"]),
            NewTask {
                description: "first line\n\nlast line".to_owned(),
                ..task("test", Status::Completed, Some("#1"), &[])
            },
            task("old", Status::Cancelled, Some("#3"), &[]),
        ];
        add(&mut list, &new, 1, 1).unwrap();
        list.get_mut(&3).unwrap().files.push("src/a.rs".to_owned());
        assert_eq!(
            markdown(&list),
            "- [ ] **build \\*it\\*** (in progress) #1\n  - [x] test #3\n    first line\n\n    last line\n    changed \
             `src/a.rs`\n    - [x] ~~old~~ (cancelled) #4\n- [ ] ship #2, after #1, #3\n"
        );
    }
}
