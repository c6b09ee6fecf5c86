struct Demo;

fn main() -> std::process::ExitCode {
    provider_core::run::<Demo>()
}
