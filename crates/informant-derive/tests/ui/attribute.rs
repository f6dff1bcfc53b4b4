use informant_derive::Projection;

#[derive(Projection)]
struct NoKind {
    #[projection(path = "spec")]
    spec: String,
}

#[derive(Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct NoPath {
    node: String,
}

#[derive(Projection)]
#[projection(version = "v1", kind = "Pod")]
struct Unknown {}

#[derive(Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct Parameters<T> {
    #[projection(path = "spec")]
    spec: T,
}

#[derive(Projection)]
#[projection(api_version = "v1", kind = "Pod")]
enum NoStruct {
    A,
}

#[derive(Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct NoNames(String);

fn main() {}
