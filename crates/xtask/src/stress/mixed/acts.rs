//! Calls, each with what must come of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tool_host::{Call, CallError, Category, Object};

use super::super::Random;
use super::super::process::object;
use super::LIMIT;
use super::crew::{ANSWER, Crew, MORTAL, NAMES, Place, STEADY};
pub(super) use super::files::Slot;

/// A call is given up once in so many, after at most so many milliseconds.
const GIVEN_UP_ONCE_IN: usize = 6;
const LATEST_MS: usize = 60;

/// A list of tasks, and what is on it.
pub(super) struct Ledger {
    session: String,
    /// How many there are at least and at most: a call that was given up may have added one.
    least: usize,
    most: usize,
}

impl Ledger {
    pub(super) fn new(session: String) -> Self {
        Self { session, least: 0, most: 0 }
    }
}

/// What is done, with what it works on.
enum Kind {
    File(Slot),
    Tasks(Ledger),
    Search,
    Run,
    Fetch,
    Ask,
    Delegate,
    Program,
    Nonsense,
}

/// A call or a few that belong together.
pub(super) struct Act {
    pub(super) place: Place,
    kind: Kind,
    random: Random,
    answered: u64,
    given_up: u64,
}

/// What became of a call.
pub(super) enum Made {
    Answer(Object),
    Failed(CallError),
    /// Given up, or its provider ended: it may have been done or not.
    Gone,
}

impl Act {
    /// The next act of a round.
    pub(super) fn draw(crew: &mut Crew, random: &mut Random) -> Self {
        let number = if random.once_in(2) { STEADY } else { MORTAL };
        let name = random.pick(&NAMES).copied().unwrap_or("search");
        let kind = match name {
            _ if random.once_in(12) => Kind::Nonsense,
            "filesystem" => crew.slots[number].pop().map_or(Kind::Search, Kind::File),
            "task" => crew.ledgers[number].pop().map_or(Kind::Search, Kind::Tasks),
            "exec" => Kind::Run,
            "web" => Kind::Fetch,
            "user" => Kind::Ask,
            "agent" => Kind::Delegate,
            "code" => Kind::Program,
            _ => Kind::Search,
        };
        let name = if matches!(kind, Kind::Search) { "search" } else { name };
        let place = Place { crew: number, name };
        Self { place, kind, random: Random::new(random.next(), 0), answered: 0, given_up: 0 }
    }

    /// Does it, and holds what comes back against what must.
    pub(super) async fn play(mut self, crew: &Crew) -> anyhow::Result<Self> {
        let mut kind = std::mem::replace(&mut self.kind, Kind::Search);
        let done = match &mut kind {
            Kind::File(slot) => slot.work(&mut self, crew).await,
            Kind::Tasks(ledger) => self.tasks(crew, ledger).await,
            Kind::Search => self.search(crew).await,
            Kind::Run => self.run(crew).await,
            Kind::Fetch => self.fetch(crew).await,
            Kind::Ask => self.ask(crew).await,
            Kind::Delegate => self.delegate(crew).await,
            Kind::Program => self.program(crew).await,
            Kind::Nonsense => self.nonsense(crew).await,
        };
        done.with_context(|| format!("{:?}", self.place))?;
        self.kind = kind;
        Ok(self)
    }

    /// Gives back what it worked on.
    pub(super) fn back(self, crew: &mut Crew, tally: &mut Tally) {
        *tally.answered.entry(self.place.name).or_default() += self.answered;
        tally.given_up += self.given_up;
        match self.kind {
            Kind::File(slot) => crew.slots[self.place.crew].push(slot),
            Kind::Tasks(ledger) => crew.ledgers[self.place.crew].push(ledger),
            _ => {}
        }
    }

    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub(super) fn token(&mut self) -> String {
        format!("t{:08x}", self.random.below(1 << 32))
    }

    /// Makes a call, which may be given up.
    pub(super) async fn call(&mut self, crew: &Crew, tool: &str, arguments: Value) -> anyhow::Result<Made> {
        let stop_after = self.random.once_in(GIVEN_UP_ONCE_IN).then(|| self.moment());
        self.call_as(crew, tool, arguments, "s", stop_after).await
    }

    /// Makes a call that is seen through.
    pub(super) async fn insist(&mut self, crew: &Crew, tool: &str, arguments: Value) -> anyhow::Result<Made> {
        self.call_as(crew, tool, arguments, "s", None).await
    }

    fn moment(&mut self) -> Duration {
        Duration::from_millis(self.random.below(LATEST_MS) as u64)
    }

    async fn call_as(
        &mut self,
        crew: &Crew,
        tool: &str,
        arguments: Value,
        session: &str,
        stop_after: Option<Duration>,
    ) -> anyhow::Result<Made> {
        let mut call = Call::new(tool, object(arguments.clone())?, session);
        call.working_directory = crew.below(self.place.crew, "root");
        let invocation = crew.host.call(&crew.member(self.place)?.provider, call);
        if let Some(after) = stop_after {
            let canceller = invocation.canceller();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                canceller.cancel();
            });
        }
        let outcome = tokio::time::timeout(LIMIT, invocation.outcome()).await;
        let outcome = outcome.with_context(|| format!("{tool} {arguments} does not end"))?;
        let may_end = self.place.crew == MORTAL;
        Ok(match outcome {
            Ok(payload) => {
                self.answered += 1;
                Made::Answer(payload)
            }
            Err(error) if error.category == Category::Cancelled && (stop_after.is_some() || may_end) => {
                self.gone()
            }
            Err(error)
                if matches!(error.category, Category::ProcessCrashed | Category::Unknown) && may_end =>
            {
                self.gone()
            }
            Err(error) => Made::Failed(error),
        })
    }

    fn gone(&mut self) -> Made {
        self.given_up += 1;
        Made::Gone
    }

    /// A call whose answer must satisfy `right`; a failure is none.
    async fn expect(
        &mut self,
        crew: &Crew,
        tool: &str,
        arguments: Value,
        right: impl FnOnce(&Value) -> bool,
    ) -> anyhow::Result<Option<Value>> {
        let shown = format!("{tool} {arguments}");
        match self.call(crew, tool, arguments).await? {
            Made::Answer(payload) => {
                let payload = Value::Object(payload);
                ensure!(right(&payload), "{shown} answers {payload}");
                Ok(Some(payload))
            }
            Made::Failed(error) => bail!("{shown} fails: {} {error}", error.category),
            Made::Gone => Ok(None),
        }
    }

    /// A call that must fail with this category.
    async fn refused(
        &mut self,
        crew: &Crew,
        tool: &str,
        arguments: Value,
        category: Category,
    ) -> anyhow::Result<()> {
        let shown = format!("{tool} {arguments}");
        match self.call(crew, tool, arguments).await? {
            Made::Failed(error) if error.category == category => self.answered += 1,
            Made::Failed(error) => bail!("{shown} fails as {}: {error}", error.category),
            Made::Answer(payload) => bail!("{shown} answers {}", Value::Object(payload)),
            Made::Gone => {}
        }
        Ok(())
    }

    async fn search(&mut self, crew: &Crew) -> anyhow::Result<()> {
        match self.random.below(3) {
            0 => {
                let right = |answer: &Value| answer["total_matches"] == 60.0 && answer["total_files"] == 40.0;
                self.expect(crew, "grep", json!({"pattern": "nee+dle", "path": "tree", "limit": 5}), right)
                    .await
            }
            1 => {
                let right = |answer: &Value| answer["total"] == 60.0;
                self.expect(crew, "glob", json!({"pattern": "tree/**/*.txt"}), right).await
            }
            _ => {
                let right = |answer: &Value| answer["matches"][0]["path"] == "tree/2/37.txt";
                self.expect(crew, "find_file", json!({"query": "37.txt"}), right).await
            }
        }
        .map(drop)
    }

    async fn run(&mut self, crew: &Crew) -> anyhow::Result<()> {
        let token = self.token();
        let cwd = format!("{}/tree/{}", crew.below(self.place.crew, "root").display(), self.random.below(7));
        let command = |text: String| json!({"command": text, "cwd": cwd});
        match self.random.below(6) {
            0 => {
                let code = self.random.below(100);
                let right =
                    |answer: &Value| answer["output"] == token.as_str() && answer["exit_code"] == code as f64;
                self.expect(crew, "bash", command(format!("printf %s {token}; exit {code}")), right).await?;
            }
            1 => {
                let right = |answer: &Value| {
                    answer["truncated"] == true
                        && answer["output"].as_str().is_some_and(|text| text.len() < 64_000)
                };
                self.expect(
                    crew,
                    "bash",
                    command("head -c 3000000 /dev/zero | tr '\\0' x".to_owned()),
                    right,
                )
                .await?;
            }
            2 => {
                let arguments = json!({"command": "cat", "cwd": cwd, "stdin": token});
                self.expect(crew, "bash", arguments, |answer| answer["output"] == token.as_str()).await?;
            }
            3 => {
                let arguments =
                    json!({"command": format!("sleep 1000; : {token}"), "cwd": cwd, "timeout_ms": 40});
                self.expect(crew, "bash", arguments, |answer| answer["status"] == "timed_out").await?;
            }
            4 => {
                let arguments =
                    json!({"command": format!("sleep 1000; : {token}"), "cwd": cwd, "background": true});
                self.expect(crew, "bash", arguments, |answer| answer["job_id"].is_string()).await?;
                self.end_jobs(crew, &token).await?;
            }
            _ => {
                let arguments = json!({"argv": ["ls", "tree"]});
                self.expect(crew, "shell_read", arguments, |answer| {
                    answer["stdout"] == "0\n1\n2\n3\n4\n5\n6\n"
                })
                .await?;
            }
        }
        Ok(())
    }

    /// Ends the jobs of a command, also one whose start was given up.
    async fn end_jobs(&mut self, crew: &Crew, token: &str) -> anyhow::Result<()> {
        let Made::Answer(list) = self.insist(crew, "job_list", json!({})).await? else { return Ok(()) };
        let jobs = list.get("jobs").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_ours = |job: &&Value| job["command"].as_str().is_some_and(|command| command.contains(token));
        for job in jobs.iter().filter(is_ours) {
            let arguments = json!({"job_id": job["job_id"], "signal": "KILL"});
            if let Made::Answer(end) = self.insist(crew, "job_kill", arguments).await? {
                ensure!(end["status"] != "running", "a job goes on after job_kill: {end:?}");
            }
        }
        Ok(())
    }

    async fn fetch(&mut self, crew: &Crew) -> anyhow::Result<()> {
        let (token, number) = (self.token(), self.random.below(50));
        let server = self.random.pick(&crew.servers).context("no server")?;
        let url = |path: String| json!({"url": server.url(&path)});
        match self.random.below(9) {
            0 | 1 => {
                let text = format!("# Page\n\n/page/{number} is here");
                self.expect(crew, "web_fetch", url(format!("/page/{number}")), |page| {
                    page["content"] == text.as_str()
                })
                .await?;
            }
            2 => {
                let path = format!("/fresh/{token}");
                let right = |page: &Value| page["content"] == path.as_str() && page["cached"] == false;
                self.expect(crew, "web_fetch", url(path.clone()), right).await?;
            }
            3 => {
                let right = |page: &Value| page["redirects"][0]["status"] == 302.0 && page["title"] == "T";
                self.expect(crew, "web_fetch", url("/away".to_owned()), right).await?;
            }
            4 => {
                let right = |page: &Value| page["content"] == "the beginning" && page["truncated"] == true;
                self.expect(crew, "web_fetch", url(format!("/cut/{token}")), right).await?;
            }
            5 => {
                let after = self.moment();
                let made =
                    self.call_as(crew, "web_fetch", url(format!("/hang/{token}")), "s", Some(after)).await?;
                ensure!(matches!(made, Made::Gone), "a page without an end is answered");
            }
            6 => {
                let mut arguments = url("/echo".to_owned());
                arguments["method"] = json!("POST");
                arguments["body"] = json!(token);
                self.expect(crew, "http_request", arguments, |answer| answer["body"] == token.as_str())
                    .await?;
            }
            7 => {
                let right = |found: &Value| found["results"][0]["title"] == token.as_str();
                self.expect(crew, "web_search", json!({"query": token}), right).await?;
            }
            _ => {
                let address = json!({"url": format!("http://10.0.0.{number}/")});
                self.refused(crew, "web_fetch", address, Category::PermissionDenied).await?;
            }
        }
        Ok(())
    }

    async fn ask(&mut self, crew: &Crew) -> anyhow::Result<()> {
        let question = json!({"question": "Which colour?", "options": [{"label": "red"}, {"label": ANSWER}]});
        self.expect(crew, "ask_user", question, |answer| answer["answer"] == ANSWER).await.map(drop)
    }

    async fn tasks(&mut self, crew: &Crew, ledger: &mut Ledger) -> anyhow::Result<()> {
        let (title, session) = (self.token(), ledger.session.clone());
        ledger.most += 1;
        let stop = self.random.once_in(GIVEN_UP_ONCE_IN).then(|| self.moment());
        let made = self.call_as(crew, "task_create", json!({"title": title}), &session, stop).await?;
        let mut id = None;
        match made {
            Made::Answer(created) => {
                ledger.least += 1;
                id = created["tasks"][0]["id"].as_str().map(str::to_owned);
            }
            Made::Failed(error) => bail!("task_create fails: {error}"),
            Made::Gone => {}
        }
        if let Some(id) = id {
            let arguments = json!({"id": id, "status": "completed"});
            match self.call_as(crew, "task_update", arguments, &session, None).await? {
                Made::Answer(updated) => {
                    ensure!(updated["tasks"][0]["status"] == "completed", "task_update answers {updated:?}");
                }
                Made::Failed(error) => bail!("task_update fails: {error}"),
                Made::Gone => {}
            }
        }
        match self.call_as(crew, "task_list", json!({"limit": 1}), &session, None).await? {
            Made::Answer(list) => {
                let total = list["total"].as_f64().unwrap_or_default() as usize;
                let bounds = ledger.least..=ledger.most;
                ensure!(bounds.contains(&total), "{total} tasks where {bounds:?} were made");
                (ledger.least, ledger.most) = (total, total);
            }
            Made::Failed(error) => bail!("task_list fails: {error}"),
            Made::Gone => {}
        }
        Ok(())
    }

    async fn delegate(&mut self, crew: &Crew) -> anyhow::Result<()> {
        let token = self.token();
        let right =
            |answer: &Value| answer["status"] == "completed" && answer["text"] == format!("told {token}");
        self.expect(crew, "spawn_subagent", json!({"prompt": token}), right).await.map(drop)
    }

    async fn program(&mut self, crew: &Crew) -> anyhow::Result<()> {
        let number = self.random.below(1_000_000);
        match self.random.below(4) {
            0 | 1 => {
                let code = json!({"code": format!("return {number} + 1")});
                let right = |answer: &Value| answer["text"].as_str() == Some(&(number + 1).to_string());
                self.expect(crew, "execute", code, right).await.map(drop)
            }
            2 => {
                let code =
                    "const all = await tools.filesystem.list_directory({path: 'tree'}); return all.total";
                self.expect(crew, "execute", json!({"code": code}), |answer| answer["text"] == "7")
                    .await
                    .map(drop)
            }
            _ => {
                let code = json!({"code": "throw new Error('on purpose')"});
                self.refused(crew, "execute", code, Category::ExecutionFailed).await
            }
        }
    }

    /// Arguments that no tool takes.
    async fn nonsense(&mut self, crew: &Crew) -> anyhow::Result<()> {
        let (tool, arguments) = match self.place.name {
            "filesystem" => ("read_file", json!({"pth": [[[]]]})),
            "search" => ("grep", json!({"pattern": {"a": null}})),
            "exec" => ("bash", json!({"command": ["a", 1, {}]})),
            "web" => ("web_fetch", json!({"url": "http://[::1", "start": -1})),
            "task" => ("task_update", json!({"id": {}, "status": "perhaps"})),
            "agent" => ("spawn_subagent", json!({"prompt": []})),
            "code" => ("execute", json!({"code": 1.5, "cod": "x".repeat(200_000)})),
            _ => ("ask_user", json!({"question": 7, "kind": "nonsense"})),
        };
        self.refused(crew, tool, arguments, Category::InvalidArguments).await
    }
}

/// What was answered.
#[derive(Default)]
pub(super) struct Tally {
    answered: BTreeMap<&'static str, u64>,
    given_up: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self.answered.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let total: u64 = self.answered.values().sum();
        write!(
            f,
            "{total} answers, all right ({}), {} calls given up or lost",
            each.join(", "),
            self.given_up
        )
    }
}

/// The name of a file in its folder.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
