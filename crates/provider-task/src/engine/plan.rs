//! What may be added to a list and changed in it.
//!
//! A list stays a forest by its parents and free of cycles by its dependencies. A set of changes is applied whole or
//! refused whole, with everything that is wrong in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::task::{Status, Task};

/// The longest title, in characters.
pub const LONGEST_TITLE: usize = 500;
/// The longest description, in characters.
pub const LONGEST_DESCRIPTION: usize = 20_000;
/// The most tasks of one list.
pub const MOST_TASKS: usize = 10_000;

/// A list, by id.
pub type List = BTreeMap<u64, Task>;

/// A task to be added. Other tasks are named by id, or by `#n`, the n-th task of the same call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTask {
    /// What is to be done.
    pub title: String,
    /// More about it.
    pub description: String,
    /// How far it is.
    pub status: Status,
    /// The task it is a part of.
    pub parent: Option<String>,
    /// The tasks that come first.
    pub depends_on: Vec<String>,
}

/// A change of a task. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The task.
    pub id: String,
    /// The revision it must still have.
    pub revision: Option<u64>,
    /// How far it is.
    pub status: Option<Status>,
    /// What is to be done.
    pub title: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// The task it is a part of; the empty text makes it a part of none.
    pub parent: Option<String>,
    /// The tasks that come first, instead of those until now.
    pub depends_on: Option<Vec<String>>,
}

/// Why a set of changes is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Something asked for cannot be.
    #[error("{}", .0.join("\n"))]
    Wrong(Vec<String>),
    /// There is no such task.
    #[error("{}", .0.join("\n"))]
    Unknown(Vec<String>),
    /// A task has changed since.
    #[error("{}", .0.join("\n"))]
    Stale(Vec<String>),
}

/// What has been found wrong so far, by kind.
#[derive(Default)]
struct Problems {
    wrong: Vec<String>,
    unknown: Vec<String>,
    stale: Vec<String>,
}

impl Problems {
    fn into_result<T>(self, value: T) -> Result<T, PlanError> {
        match self {
            Self { wrong, .. } if !wrong.is_empty() => Err(PlanError::Wrong(wrong)),
            Self { unknown, .. } if !unknown.is_empty() => Err(PlanError::Unknown(unknown)),
            Self { stale, .. } if !stale.is_empty() => Err(PlanError::Stale(stale)),
            _ => Ok(value),
        }
    }
}

/// Adds tasks to a list; `next` is the first free id, `revision` the one of this change. Answers the ids.
///
/// # Errors
/// Everything that is wrong; the list is then not to be used.
pub fn add(list: &mut List, new: &[NewTask], next: u64, revision: u64) -> Result<Vec<u64>, PlanError> {
    let mut problems = Problems::default();
    if list.len() + new.len() > MOST_TASKS {
        problems
            .wrong
            .push(format!("a list holds at most {MOST_TASKS} tasks, and this one has {}", list.len()));
        return problems.into_result(Vec::new());
    }
    let ids: Vec<u64> = (next..).take(new.len()).collect();
    for (index, (task, &id)) in new.iter().zip(&ids).enumerate() {
        let field =
            |name: &str| if new.len() == 1 { name.to_owned() } else { format!("tasks[{index}].{name}") };
        let title = title(&task.title, &field("title"), &mut problems);
        let description = description(&task.description, &field("description"), &mut problems);
        let parent = task.parent.as_deref().filter(|name| !name.trim().is_empty());
        let parent = parent.and_then(|name| resolve(name, &field("parent"), list, &ids, &mut problems));
        let depends_on: BTreeSet<u64> = task
            .depends_on
            .iter()
            .filter_map(|name| resolve(name, &field("depends_on"), list, &ids, &mut problems))
            .collect();
        let depends_on = depends_on.into_iter().collect();
        let files = Vec::new();
        list.insert(
            id,
            Task { id, title, description, status: task.status, parent, depends_on, files, revision },
        );
    }
    check_order(list, &ids, &mut problems);
    problems.into_result(ids)
}

/// Changes tasks of a list. Answers their ids, each once, in the order they were named.
///
/// # Errors
/// Everything that is wrong; the list is then not to be used.
pub fn change(list: &mut List, changes: &[Change], revision: u64) -> Result<Vec<u64>, PlanError> {
    let mut problems = Problems::default();
    let mut ids: Vec<u64> = Vec::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        let field =
            |name: &str| if changes.len() == 1 { name.to_owned() } else { format!("tasks[{index}].{name}") };
        let Some(id) = resolve(&change.id, &field("id"), list, &[], &mut problems) else { continue };
        if ids.contains(&id) {
            problems.wrong.push(format!("{}: task {id} is changed twice in one call", field("id")));
            continue;
        }
        ids.push(id);
        if let Some(task) =
            list.get(&id).filter(|task| change.revision.is_some_and(|seen| seen != task.revision))
        {
            problems.stale.push(stale(task, change.revision.unwrap_or_default()));
            continue;
        }
        apply(list, id, change, field, &mut problems);
        if let Some(task) = list.get_mut(&id) {
            task.revision = revision;
        }
    }
    check_order(list, &ids, &mut problems);
    problems.into_result(ids)
}

fn stale(task: &Task, seen: u64) -> String {
    format!(
        "revision: task {} has changed since revision {seen}; it is now at revision {}, {}: {}. Look at it and decide again",
        task.id, task.revision, task.status, task.title
    )
}

fn apply(list: &mut List, id: u64, change: &Change, field: impl Fn(&str) -> String, problems: &mut Problems) {
    let parent = match change.parent.as_deref().map(str::trim) {
        None => None,
        Some("") => Some(None),
        Some(name) => resolve(name, &field("parent"), list, &[], problems).map(Some),
    };
    let depends_on = change.depends_on.as_ref().map(|names| {
        let resolved =
            names.iter().filter_map(|name| resolve(name, &field("depends_on"), list, &[], problems));
        resolved.collect::<BTreeSet<u64>>().into_iter().collect()
    });
    let title = change.title.as_ref().map(|text| title(text, &field("title"), problems));
    let description =
        change.description.as_ref().map(|text| description(text, &field("description"), problems));
    let Some(task) = list.get_mut(&id) else { return };
    task.title = title.unwrap_or_else(|| task.title.clone());
    task.description = description.unwrap_or_else(|| task.description.clone());
    task.status = change.status.unwrap_or(task.status);
    task.parent = parent.unwrap_or(task.parent);
    task.depends_on = depends_on.unwrap_or_else(|| task.depends_on.clone());
}

/// What a reader of the change should know: tasks begun before what they wait for, and closed over open parts.
pub fn remarks(list: &List, ids: &[u64]) -> Vec<String> {
    let open = |id: &u64| list.get(id).is_some_and(|task| !task.status.is_over());
    let names = |ids: Vec<u64>| ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let mut remarks = Vec::new();
    for task in ids.iter().filter_map(|id| list.get(id)) {
        let waits: Vec<u64> = task.depends_on.iter().copied().filter(open).collect();
        if matches!(task.status, Status::InProgress | Status::Completed) && !waits.is_empty() {
            remarks.push(format!(
                "task {} is {} though {} must come first",
                task.id,
                task.status,
                names(waits)
            ));
        }
        let parts: Vec<u64> = list
            .values()
            .filter(|part| part.parent == Some(task.id))
            .map(|part| part.id)
            .filter(open)
            .collect();
        if task.status.is_over() && !parts.is_empty() {
            remarks.push(format!(
                "task {} is {} though its parts {} are open",
                task.id,
                task.status,
                names(parts)
            ));
        }
    }
    remarks
}

fn title(text: &str, field: &str, problems: &mut Problems) -> String {
    let title = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match title.chars().count() {
        0 => problems.wrong.push(format!("{field}: is empty; say what is to be done")),
        long if long > LONGEST_TITLE => problems.wrong.push(format!(
            "{field}: has {long} characters, at most {LONGEST_TITLE} are kept; put the rest into description"
        )),
        _ => {}
    }
    title
}

fn description(text: &str, field: &str, problems: &mut Problems) -> String {
    let long = text.chars().count();
    if long > LONGEST_DESCRIPTION {
        problems
            .wrong
            .push(format!("{field}: has {long} characters, at most {LONGEST_DESCRIPTION} are kept"));
    }
    text.to_owned()
}

/// The task that a name stands for: an id, or `#n` for the n-th of `new`.
fn resolve(name: &str, field: &str, list: &List, new: &[u64], problems: &mut Problems) -> Option<u64> {
    let name = name.trim();
    let found = match name.strip_prefix('#').and_then(|place| place.parse::<usize>().ok()) {
        Some(place) if !new.is_empty() => place.checked_sub(1).and_then(|index| new.get(index)).copied(),
        _ => name.parse::<u64>().ok().filter(|id| list.contains_key(id)),
    };
    if found.is_none() {
        let known = match list.len() {
            0 => "the list is empty".to_owned(),
            count => format!("the list has {count} tasks, task_list shows their ids"),
        };
        problems.unknown.push(format!("{field}: there is no task {name:?}; {known}"));
    }
    found
}

/// Refuses a task that is part of itself or waits for itself, by whatever way.
fn check_order(list: &List, ids: &[u64], problems: &mut Problems) {
    for &id in ids {
        let parents = |id: u64| list.get(&id).and_then(|task| task.parent).into_iter().collect::<Vec<_>>();
        let first = |id: u64| list.get(&id).map(|task| task.depends_on.clone()).unwrap_or_default();
        if let Some(way) = way_back(id, parents) {
            problems.wrong.push(format!("parent: task {id} would be a part of itself: {}", shown(&way)));
        }
        if let Some(way) = way_back(id, first) {
            problems.wrong.push(format!("depends_on: task {id} would wait for itself: {}", shown(&way)));
        }
    }
}

fn shown(way: &[u64]) -> String {
    way.iter().map(u64::to_string).collect::<Vec<_>>().join(" → ")
}

/// The way from a task back to itself, if there is one.
fn way_back(start: u64, next: impl Fn(u64) -> Vec<u64>) -> Option<Vec<u64>> {
    let mut came_from: BTreeMap<u64, u64> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(here) = open.pop() {
        for there in next(here) {
            if there == start {
                let mut way = vec![start, here];
                while let Some(&before) = came_from.get(way.last()?) {
                    way.push(before);
                }
                if here == start {
                    way.pop();
                    way.push(start);
                }
                way.reverse();
                return Some(way);
            }
            if let std::collections::btree_map::Entry::Vacant(unseen) = came_from.entry(there) {
                unseen.insert(here);
                open.push(there);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(title: &str, depends_on: &[&str]) -> NewTask {
        let depends_on = depends_on.iter().map(|&name| name.to_owned()).collect();
        NewTask { title: title.to_owned(), depends_on, ..NewTask::default() }
    }

    fn part(title: &str, parent: &str) -> NewTask {
        NewTask { parent: Some(parent.to_owned()), ..task(title, &[]) }
    }

    fn list(new: &[NewTask]) -> List {
        let mut list = List::new();
        add(&mut list, new, 1, 1).unwrap();
        list
    }

    fn changed(id: &str) -> Change {
        Change { id: id.to_owned(), ..Change::default() }
    }

    #[track_caller]
    fn check_refused(list: &mut List, change: Change, expected: &str) {
        assert_eq!(super::change(list, &[change], 9).unwrap_err().to_string(), expected);
    }

    #[test]
    fn new_tasks_may_name_each_other() {
        let list = list(&[task("a", &["#2"]), task("b", &[]), part("c", "#1")]);
        assert_eq!((list[&1].depends_on.as_slice(), list[&3].parent), ([2].as_slice(), Some(1)));
    }

    #[test]
    fn a_cycle_is_refused_with_its_way() {
        let mut tasks = list(&[task("a", &[]), task("b", &["#1"]), task("c", &["#2"]), part("d", "#1")]);
        let wait = Change { depends_on: Some(vec!["3".to_owned()]), ..changed("1") };
        check_refused(&mut tasks.clone(), wait, "depends_on: task 1 would wait for itself: 1 → 3 → 2 → 1");
        let itself = Change { depends_on: Some(vec!["1".to_owned()]), ..changed("1") };
        check_refused(&mut tasks.clone(), itself, "depends_on: task 1 would wait for itself: 1 → 1");
        let parent = Change { parent: Some("4".to_owned()), ..changed("1") };
        check_refused(&mut tasks, parent, "parent: task 1 would be a part of itself: 1 → 4 → 1");
        let error = add(&mut List::new(), &[task("a", &["#2"]), task("b", &["#1"])], 1, 1).unwrap_err();
        assert!(error.to_string().contains("would wait for itself: 1 → 2 → 1"), "{error}");
    }

    #[test]
    fn an_unknown_task_is_named() {
        let mut tasks = list(&[task("a", &[])]);
        let expected = "id: there is no task \"7\"; the list has 1 tasks, task_list shows their ids";
        check_refused(&mut tasks, changed("7"), expected);
        let error = add(&mut List::new(), &[task("a", &["x"])], 1, 1).unwrap_err();
        assert_eq!(error.to_string(), "depends_on: there is no task \"x\"; the list is empty");
    }

    #[test]
    fn a_task_that_changed_since_is_stale() {
        let mut tasks = list(&[task("a", &[])]);
        let seen =
            |revision| Change { revision: Some(revision), status: Some(Status::Completed), ..changed("1") };
        assert_eq!(change(&mut tasks, &[seen(1)], 2), Ok(vec![1]));
        let PlanError::Stale(messages) = change(&mut tasks, &[seen(1)], 3).unwrap_err() else { panic!() };
        assert!(
            messages[0].contains("changed since revision 1; it is now at revision 2, completed: a"),
            "{messages:?}"
        );
    }

    #[test]
    fn everything_wrong_is_said_at_once() {
        let error = add(&mut List::new(), &[task(" ", &[]), task(&"x".repeat(501), &[])], 1, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tasks[0].title: is empty; say what is to be done\ntasks[1].title: has 501 characters, at most 500 are kept; \
             put the rest into description"
        );
    }

    #[test]
    fn a_parent_is_taken_away_with_the_empty_text() {
        let mut tasks = list(&[task("a", &[]), part("b", "#1")]);
        change(&mut tasks, &[Change { parent: Some(String::new()), ..changed("2") }], 2).unwrap();
        assert_eq!(tasks[&2].parent, None);
    }

    #[test]
    fn what_is_out_of_order_is_remarked() {
        let mut tasks = list(&[task("a", &[]), task("b", &["#1"]), part("c", "#2")]);
        let done = Change { status: Some(Status::Completed), ..changed("2") };
        let ids = change(&mut tasks, &[done], 2).unwrap();
        assert_eq!(
            remarks(&tasks, &ids),
            [
                "task 2 is completed though 1 must come first",
                "task 2 is completed though its parts 3 are open"
            ]
        );
    }
}
