use informant_derive::Projection;

#[derive(Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct Syntax {
    #[projection(path = "metadata.labels.app/name")]
    slash: Option<String>,
    #[projection(path = "spec..nodeName")]
    hole: Option<String>,
    #[projection(path = "spec.containers[x].image")]
    bracket: Option<String>,
    #[projection(path = ".spec.nodeName")]
    dot: Option<String>,
    #[projection(path = 5)]
    number: Option<String>,
    #[projection(path = "spec.nodeName")]
    right: Option<String>,
}

fn main() {}
