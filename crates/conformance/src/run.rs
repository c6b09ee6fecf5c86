//! A whole run: what is known about the provider, and the scenes it is put through.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use goplugin::host::LaunchError;
use harness_proto::config::v1::{AttrType, ConfigAttribute};
use harness_proto::tool::v1::{GetSchemaResponse, ToolKind, ToolSchema};
use prost_types::Struct;
use provider_core::wire::map_to_struct;
use serde_json::Value;
use tokio::sync::OnceCell;
use tool_host::Object;
use tool_host::catalogue::Catalogue;
use tool_host::config::Settings;

use crate::calls::{Call, Calls, fill_object};
use crate::http_server::HttpServer;
use crate::judge::Judge;
use crate::report::Report;
use crate::scenes;
use crate::secret::Canaries;
use crate::session::{Session, Stage};
use crate::subject::Subject;
use crate::topics::{self, handshake, schema};
use crate::world::World;

/// How many processes of the provider run at a time.
const SCENES_AT_ONCE: usize = 2;

/// What all scenes share.
pub(crate) struct Run<'a> {
    pub(crate) subject: Subject,
    pub(crate) calls: Option<&'a Calls>,
    pub(crate) judge: Judge,
    pub(crate) canaries: Canaries,
    /// The declaration as a fresh process gives it.
    pub(crate) schema: GetSchemaResponse,
    pub(crate) catalogue: Catalogue,
    /// The configuration, with names still to be filled in; `None` where nobody can tell one.
    pub(crate) config: Option<Object>,
    names: BTreeMap<String, Value>,
    usual_end: OnceCell<Option<String>>,
    _http: Option<HttpServer>,
}

/// Puts the provider through every scene.
///
/// It is launched several times, at most two at a time, each in a scratch directory of its own that is removed
/// again. Runs on a current-thread runtime with I/O and time enabled.
pub async fn check(subject: &Subject, calls: Option<&Calls>) -> Report {
    let all: Vec<&str> = topics::TOPICS.iter().map(|(word, _, _)| *word).collect();
    check_topics(subject, calls, &all).await
}

/// Like [`check`], without the scenes that show nothing about these topics. The report has every requirement all the
/// same: what another scene shows by the way is told too.
pub async fn check_topics(subject: &Subject, calls: Option<&Calls>, topics: &[&str]) -> Report {
    let judge = Judge::default();
    let mut subject = subject.clone();
    if let Some(calls) = calls {
        let env = calls.env.iter().map(|(name, value)| (name.clone(), value.clone()));
        subject.env.splice(0..0, env);
    }
    if let Some(run) = Run::prepare(subject.clone(), calls, &judge).await {
        let run = &run;
        let wanted = |shown: &[&str]| shown.iter().any(|topic| topics.contains(topic));
        let scenes = scenes(run).into_iter().filter(|(shown, _)| wanted(shown)).map(|(_, scene)| scene);
        futures_util::stream::iter(scenes).buffer_unordered(SCENES_AT_ONCE).collect::<()>().await;
    }
    judge.report(subject.name, calls)
}

type Scene<'a> = LocalBoxFuture<'a, ()>;

/// Every scene and the topics it shows something about. The longest come first.
fn scenes<'a>(run: &'a Run<'a>) -> Vec<(&'static [&'static str], Scene<'a>)> {
    const TALK: &[&str] = &[
        "HANDSHAKE",
        "DESCRIBE",
        "SCHEMA",
        "CONFIGURE",
        "INVOKE",
        "STREAM",
        "PREVIEW",
        "RENDER",
        "CALLBACK",
        "SECRET",
    ];
    vec![
        (&["SHUTDOWN", "SECRET"], Box::pin(scenes::stopping::play(run))),
        (&["CANCEL"], Box::pin(scenes::ending::play(run))),
        (TALK, Box::pin(scenes::conversation::play(run))),
        (&["CALLBACK", "SECRET"], Box::pin(scenes::hosts::play(run))),
        (&["CONFIGURE", "SECRET"], Box::pin(scenes::configuring::play(run))),
        (&["HANDSHAKE", "DESCRIBE", "SCHEMA", "PREVIEW"], Box::pin(scenes::starting::play(run))),
        (&["HANDSHAKE"], Box::pin(scenes::cookie::play(run))),
        (&["HANDSHAKE"], Box::pin(scenes::launching::play(run))),
    ]
}

impl<'a> Run<'a> {
    /// Asks a first process what the provider declares; nothing else makes sense without that.
    async fn prepare(subject: Subject, calls: Option<&'a Calls>, judge: &Judge) -> Option<Self> {
        let nobody = Canaries::new(&Judge::default(), Vec::new());
        let stage = Stage { callbacks: Some(crate::kernel::Conduct::Serve), ..Stage::default() };
        let world = World::new(None).ok()?;
        let session = match Session::start(&subject, world, &stage, &nobody).await {
            Ok(session) => session,
            Err(error) => {
                judge.fail(handshake::READY, error.to_string());
                return None;
            }
        };
        judge.pass(handshake::READY);
        let schema = match session.schema().await {
            Ok(schema) => schema,
            Err(refusal) => {
                judge.fail(schema::ANSWERED, refusal.to_string());
                return None;
            }
        };
        judge.demand(schema::ANSWERED, !schema.tools.is_empty(), || "no tools".to_owned());
        let http = match calls {
            Some(calls) if !calls.http.is_empty() => HttpServer::start(&calls.http).await.ok(),
            _ => None,
        };
        let names = http.iter().map(|http| ("http".to_owned(), Value::String(http.base()))).collect();
        let catalogue = Catalogue::from(schema.clone());
        let secret = format!("canary-{}", ulid::Ulid::new());
        let config = configuration(calls, &schema, &catalogue, &secret);
        let values = secrets(config.as_ref(), &schema);
        Some(Self {
            canaries: Canaries::new(judge, values),
            subject,
            calls,
            judge: judge.clone(),
            schema,
            catalogue,
            config,
            names,
            usual_end: OnceCell::new(),
            _http: http,
        })
    }

    /// Starts the provider in a new world. What keeps it from starting is noted as a failure.
    pub(crate) async fn start(&self, stage: &Stage) -> Option<Session> {
        match self.try_start(stage).await? {
            Ok(session) => Some(session),
            Err(error) => {
                self.judge.fail(handshake::READY, error.to_string());
                None
            }
        }
    }

    /// Starts the provider in a new world; `None` where there is no room for one.
    pub(crate) async fn try_start(&self, stage: &Stage) -> Option<Result<Session, LaunchError>> {
        let world = World::new(self.calls).ok()?;
        Some(Session::start(&self.subject, world, stage, &self.canaries).await)
    }

    /// What names stand for in a session.
    pub(crate) fn names(&self, session: &Session) -> BTreeMap<String, Value> {
        let mut names = session.world.names();
        names.extend(self.names.clone());
        names
    }

    /// The right configuration for a session, as JSON.
    pub(crate) fn config_in(&self, session: &Session) -> Option<Object> {
        self.config.as_ref().map(|config| fill_object(config, &self.names(session)))
    }

    /// The right configuration for a session.
    pub(crate) fn wire_config_in(&self, session: &Session) -> Option<Struct> {
        self.config_in(session).map(map_to_struct)
    }

    /// Starts the provider and configures it rightly; `None` if it does not come to that, which other scenes
    /// judge.
    pub(crate) async fn configured(&self, stage: &Stage) -> Option<Session> {
        let session = self.start(stage).await?;
        let config = self.wire_config_in(&session)?;
        session.configure(config).await.ok()?;
        Some(session)
    }

    /// How the first listed call ends under a host like the kernel; `None` where there is none to make.
    pub(crate) async fn usual_end(&self) -> Option<&String> {
        self.usual_end.get_or_init(|| Box::pin(scenes::hosts::usual_end(self))).await.as_ref()
    }

    /// The attributes of the configuration.
    pub(crate) fn attributes(&self) -> &[ConfigAttribute] {
        self.schema.config_schema.as_ref().map_or(&[], |config| &config.attributes)
    }

    /// The declaration of a tool.
    pub(crate) fn tool(&self, name: &str) -> Option<&ToolSchema> {
        self.schema.tools.iter().find(|tool| tool.name == name)
    }

    /// The first call of a data source that ends with a result by itself.
    pub(crate) fn first_of_a_data_source(&self, calls: &'a Calls) -> Option<&'a Call> {
        let reads = |call: &&Call| self.tool(&call.tool).map(ToolSchema::kind) == Some(ToolKind::DataSource);
        calls.calls.iter().filter(|call| call.is_positive()).find(reads)
    }

    /// Whether a process does the work of a tool, where somebody has said so.
    pub(crate) fn is_process(&self, tool: &str) -> Option<bool> {
        self.calls.map(|calls| calls.process_tools.iter().any(|name| name == tool))
    }

    /// Whether the tool may be called with arguments made up here: what changes something only if the calls file
    /// has a call of it, so that it works in the scratch root.
    pub(crate) fn may_be_tried(&self, tool: &ToolSchema) -> bool {
        match tool.kind() {
            ToolKind::DataSource => true,
            ToolKind::Resource => {
                self.calls.is_some_and(|calls| calls.calls.iter().any(|call| call.tool == tool.name))
            }
            ToolKind::Interactive | ToolKind::Unspecified => false,
        }
    }
}

/// The configuration of the calls file, or without one what the scratch root alone makes. Sensitive attributes that
/// it leaves out get a value that can be recognised.
fn configuration(
    calls: Option<&Calls>,
    schema: &GetSchemaResponse,
    catalogue: &Catalogue,
    secret: &str,
) -> Option<Object> {
    let attributes = schema.config_schema.as_ref().map_or(&[][..], |config| &config.attributes);
    let mut config = match calls {
        Some(calls) => calls.config.clone(),
        None => {
            let settings = Settings { roots: vec!["{root}".into()], ..Settings::default() };
            let config = settings.resolve(&catalogue.config).ok()?;
            let missing = attributes.iter().any(|it| it.required && !config.contains_key(&it.name));
            (!missing).then_some(config)?
        }
    };
    for attribute in attributes.iter().filter(|it| it.sensitive && it.r#type() == AttrType::String) {
        config.entry(attribute.name.clone()).or_insert_with(|| secret.into());
    }
    Some(config)
}

/// The texts that are secret: values of sensitive attributes long enough to be recognised.
fn secrets(config: Option<&Object>, schema: &GetSchemaResponse) -> Vec<String> {
    const SHORTEST: usize = 6;
    fn collect(attributes: &[ConfigAttribute], config: &Object, out: &mut Vec<String>) {
        for attribute in attributes {
            match config.get(&attribute.name) {
                Some(Value::String(text)) if attribute.sensitive && text.len() >= SHORTEST => {
                    out.push(text.clone());
                }
                Some(Value::Object(inner)) => collect(&attribute.object_attributes, inner, out),
                _ => {}
            }
        }
    }
    let mut out = Vec::new();
    if let (Some(config), Some(declared)) = (config, &schema.config_schema) {
        collect(&declared.attributes, config, &mut out);
    }
    out
}
