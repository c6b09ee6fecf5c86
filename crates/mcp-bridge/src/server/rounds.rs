//! Calls that wait for the client's next request, which brings what a person said.
//!
//! A stateless revision has no way to ask during a call. So the call's request is answered with the question and a sealed
//! handle, the call stays alive here, and the request that comes back with the handle goes on with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    ElicitRequest, ElicitResult, InputRequest, InputRequiredResult, InputResponses, RequestStateCodec,
    SealOptions,
};
use tokio::task::AbortHandle;

use super::Work;
use super::questions::{Asked, Reply};
use super::secret;

/// How long a question waits for its answer: as long as a program may run.
const LIFE: Duration = Duration::from_secs(15 * 60);

/// The calls that wait. Clones share them.
#[derive(Clone)]
pub(super) struct Rounds(Arc<Inner>);

struct Inner {
    codec: RequestStateCodec,
    waiting: Mutex<HashMap<String, Waiting>>,
}

struct Waiting {
    work: Work,
    asked: Asked,
    end: AbortHandle,
}

/// What a request that came back means.
pub(super) enum Resumed {
    /// The call goes on.
    Goes(Box<Work>),
    /// The question is put again, because there was no answer to it.
    Waits(InputRequiredResult),
}

impl Rounds {
    /// # Errors
    /// The system has no random numbers for a key.
    pub(super) fn new() -> std::io::Result<Self> {
        let codec = RequestStateCodec::try_new(secret::bytes()?.to_vec()).map_err(std::io::Error::other)?;
        Ok(Self(Arc::new(Inner { codec, waiting: Mutex::default() })))
    }

    /// Keeps a call whose question is then the answer to the request.
    pub(super) fn park(&self, work: Work, asked: Asked) -> InputRequiredResult {
        let id = ulid::Ulid::new().to_string();
        let required = self.required(&id, &work.name, &asked);
        let (rounds, forget) = (self.clone(), id.clone());
        let end = tokio::spawn(async move {
            tokio::time::sleep(LIFE).await;
            rounds.waiting().remove(&forget);
        });
        self.waiting().insert(id, Waiting { work, asked, end: end.abort_handle() });
        required
    }

    /// Goes on with the call that the sealed handle names.
    ///
    /// # Errors
    /// `-32602` when the handle is none of ours, was changed, is of another tool, or was used.
    pub(super) fn resume(
        &self,
        tool: &str,
        state: &str,
        mut responses: InputResponses,
    ) -> Result<Resumed, ErrorData> {
        let invalid =
            || ErrorData::invalid_params("requestState is not valid for this call; make the call anew", None);
        let id = self.0.codec.open_with(state, tool.as_bytes()).map_err(|error| {
            tracing::debug!(%error, "a requestState is refused");
            invalid()
        })?;
        let id = String::from_utf8(id).map_err(|_| invalid())?;
        let mut calls = self.waiting();
        let waiting = calls.get(&id).ok_or_else(invalid)?;
        let Some(response) = responses.remove(&waiting.asked.key) else {
            return Ok(Resumed::Waits(self.required(&id, tool, &waiting.asked)));
        };
        let result: ElicitResult = serde_json::from_value(response).map_err(|error| {
            let key = &waiting.asked.key;
            ErrorData::invalid_params(format!("inputResponses.{key} is no elicitation result: {error}"), None)
        })?;
        let Waiting { work, asked, end } = calls.remove(&id).ok_or_else(invalid)?;
        end.abort();
        // A question whose time was up has answered itself.
        let _ = asked.reply.send(Reply::from(result));
        Ok(Resumed::Goes(Box::new(work)))
    }

    /// Gives up all that waits.
    pub(super) fn clear(&self) {
        self.waiting().drain().for_each(|(_, waiting)| waiting.end.abort());
    }

    fn required(&self, id: &str, tool: &str, asked: &Asked) -> InputRequiredResult {
        let options = SealOptions::new().associated_data(tool.as_bytes()).ttl(LIFE);
        let state = self.0.codec.seal_with(id.as_bytes(), &options);
        let question = InputRequest::Elicitation(ElicitRequest::new(asked.params.clone()));
        InputRequiredResult::new(Some(BTreeMap::from([(asked.key.clone(), question)])), Some(state))
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
