//! Sockets: HTTP/1.1 and HTTP/2, TLS or plain, and the kubeconfig that leads there.
