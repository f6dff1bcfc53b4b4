use informant_derive::Projection;

#[derive(Projection)]
#[projection(api_version = "v1", kind = "Deployment")]
struct OtherGroup {}

#[derive(Projection)]
#[projection(api_version = "apps/v1", kind = "Deploymnt")]
struct Misspelt {}

fn main() {}
