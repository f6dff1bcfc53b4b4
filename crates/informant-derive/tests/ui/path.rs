use informant_derive::Projection;

#[derive(Projection)]
#[projection(api_version = "v1", kind = "Pod")]
struct Paths {
    #[projection(path = "spec.nodeNam")]
    misspelt: Option<String>,
    #[projection(path = "phase")]
    elsewhere: Option<String>,
    #[projection(path = "spec.containers.image")]
    list: Vec<String>,
    #[projection(path = "spec.nodeName[*]")]
    no_list: Vec<String>,
    #[projection(path = "status.conditions[typ=Ready].status")]
    selector: Option<String>,
    #[projection(path = "metadata.labels.app.kubernetes.io")]
    dots: Option<String>,
    #[projection(path = "spec.nodeName.first")]
    below: Option<String>,
    #[projection(path = "spec.nodeName")]
    right: Option<String>,
}

fn main() {}
