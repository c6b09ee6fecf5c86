//! A plugin that does what the tests tell it to, in the variable `DEMO`, and says what it did on its standard
//! error.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Command, ExitCode};
use std::time::Duration;

use goplugin::Contract;
use goplugin::plugin::{Broker, Listening, Transport};
use tonic::service::Routes;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

const CONTRACT: Contract =
    Contract { cookie_key: "DEMO_COOKIE", cookie_value: "crumbs", app_versions: &[1, 2] };

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mode = std::env::var("DEMO").unwrap_or_default();
    let transport = if mode == "tcp" { Transport::Tcp } else { Transport::Unix };
    // What a careless plugin keeps to write to when it should not.
    let careless = std::io::stdout().as_fd().try_clone_to_owned();
    let listening = match Listening::bind_to(&CONTRACT, transport).await {
        Ok(listening) => listening,
        Err(error) => return error.report(),
    };
    match mode.as_str() {
        "spill" => {
            std::thread::spawn(move || careless.and_then(|output| spill(output.into())));
        }
        _ => drop(careless),
    }
    tokio::spawn(act(mode.clone(), listening.broker()));
    let stopped = listening.serve(Routes::default(), |reason| async move {
        eprintln!("stopping: {reason:?}");
        match mode.as_str() {
            "slow stop" => std::future::pending().await,
            "stubborn" => std::thread::sleep(Duration::from_secs(60)),
            _ => {}
        }
    });
    match stopped.await {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes a line of 1 MiB, a while after the handshake.
fn spill(mut output: std::fs::File) -> std::io::Result<()> {
    std::thread::sleep(Duration::from_millis(200));
    output.write_all(&vec![b'x'; 1 << 20])?;
    output.write_all(b"\n")?;
    eprintln!("spilled");
    Ok(())
}

async fn act(mode: String, broker: Broker) {
    match mode.as_str() {
        "chatty" => {
            println!("careless print");
            // Not `status`, so that the child keeps the standard output it inherits.
            let _ = Command::new("/bin/sh").args(["-c", "echo child; grep SigIgn /proc/self/status"]).spawn();
        }
        "environment" => {
            let mut variables: Vec<String> =
                std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
            variables.sort();
            eprintln!("environment: {}", variables.join(" "));
        }
        "crash" => {
            eprintln!("about to crash");
            std::process::exit(3);
        }
        "child" => match Command::new("/bin/sleep").arg("1000").spawn() {
            Ok(child) => eprintln!("child: {}", child.id()),
            Err(error) => eprintln!("no child: {error}"),
        },
        "callback" => report_callback(&broker).await,
        "late callback" => {
            tokio::time::sleep(Duration::from_secs(6)).await;
            report_callback(&broker).await;
        }
        _ => {}
    }
}

/// Calls the host all the time and says whenever the outcome is another than before.
async fn report_callback(broker: &Broker) {
    let mut last = String::new();
    loop {
        let outcome = match call_back(broker).await {
            Ok(status) => format!("callback: {status}"),
            Err(error) => {
                broker.forget(goplugin::host::CALLBACK_SERVICE);
                format!("callback failed: {error}")
            }
        };
        if outcome != last {
            eprintln!("{outcome}");
            last = outcome;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn call_back(broker: &Broker) -> Result<i32, Box<dyn std::error::Error>> {
    let channel = broker.dial(goplugin::host::CALLBACK_SERVICE, Duration::from_secs(5)).await?;
    let request = HealthCheckRequest { service: "callback".to_owned() };
    Ok(HealthClient::new(channel).check(request).await?.into_inner().status)
}
