//! The benchmarks with the system's allocator.

fn main() -> std::process::ExitCode {
    informant_bench::main()
}
