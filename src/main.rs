//! The program `barest`: shows what is in safetensors files, checks them, and tells their story.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
