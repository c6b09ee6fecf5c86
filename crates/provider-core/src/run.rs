//! A provider as a process.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use goplugin::plugin::Listening;

use crate::core::Core;
use crate::debugger;
use crate::kernel::{Kernel, Source};
use crate::logging;
use crate::registry::Catalogue;
use crate::service::routes;
use crate::tool::Provider;

/// What the kernel and every provider agree on before they talk.
///
/// ```
/// use provider_core::CONTRACT;
///
/// // What a host of one's own must set for the process to serve instead of explaining itself.
/// std::process::Command::new("./provider-notes").env(CONTRACT.cookie_key, CONTRACT.cookie_value);
/// ```
pub const CONTRACT: goplugin::Contract = goplugin::Contract {
    cookie_key: "PLUGGABLEHARNESS_AGENT_PLUGIN",
    cookie_value: "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake",
    app_versions: &[1],
};

/// Serves the provider until the host ends it. This is the whole `main` of a provider:
///
/// ```no_run
/// # use provider_core::prelude::*;
/// # struct Hello;
/// # impl Provider for Hello {
/// #     const NAME: &'static str = "hello";
/// #     const VERSION: &'static str = "0.1.0";
/// #     type Config = NoConfig;
/// #     async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> { Ok(Self) }
/// #     fn tools(_: &mut Tools<Self>) {}
/// # }
/// fn main() -> std::process::ExitCode {
///     provider_core::run::<Hello>()
/// }
/// ```
///
/// The exit code is 0 after an orderly end and 1 when the process could not start; the reason is on stderr.
///
/// With `PROVIDER_WAIT_FOR_DEBUGGER` in the environment it first waits up to 50 s until a debugger is attached.
pub fn run<P: Provider>() -> ExitCode {
    if let Some(code) = supervisor::run_if_asked() {
        return code;
    }
    debugger::wait_if_asked();
    match serve::<P>() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            // Nobody may be reading; then there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "provider {}: {reason}", P::NAME);
            ExitCode::FAILURE
        }
    }
}

fn serve<P: Provider>() -> Result<(), Box<dyn std::error::Error>> {
    // One thread serves: on few cores it halves the latency of a call. Blocking work has threads of its own.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(64).build()?;
    let result = runtime.block_on(async {
        let listening = Listening::bind(&CONTRACT).await?;
        let catalogue = Catalogue::<P>::of()?;
        logging::install();
        let kernel = Kernel::new(Source::Broker(listening.broker()));
        logging::forward(kernel.clone());
        let core = Arc::new(Core::new(catalogue, kernel));
        let services = routes(&core);
        let reason = listening.serve(services, |_| async move { core.stop().await }).await?;
        tracing::debug!("stopped: {reason:?}");
        Ok(())
    });
    // A blocking call that hangs in the operating system must not keep the process alive.
    runtime.shutdown_background();
    result
}
