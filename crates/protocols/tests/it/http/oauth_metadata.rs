//! Tests of the OAuth metadata for clients without a token. OAuth metadata does not change which tokens the HTTP server
//! accepts.

use serde_json::json;
use stead_protocols::http::{AllowedHosts, AuthorizationServers, HttpListener, HttpServerOptions, UrlScheme};

use super::TestHttpServer;

const AUTHORIZATION_SERVER: &str = "https://login.example";

async fn start_server(scheme: UrlScheme) -> TestHttpServer {
    let authorization = AuthorizationServers { servers: vec![AUTHORIZATION_SERVER.to_owned()], scheme };
    let options = HttpServerOptions { authorization_servers: Some(authorization), ..HttpServerOptions::default() };
    TestHttpServer::start_with_options(HttpListener::Tcp, AllowedHosts::loopback, options).await
}

#[tokio::test]
async fn missing_token_points_to_oauth_metadata() {
    for (way, scheme) in [(UrlScheme::Http, "http"), (UrlScheme::Https, "https")] {
        let server = start_server(way).await;
        let base = format!("{scheme}://localhost:{}", server.port);
        for (path, about) in [("/mcp", "/mcp"), ("/mcp/comma", "/mcp/comma"), ("/rpc", "/rpc"), ("/nowhere", "")] {
            for token in ["", "wrong"] {
                let response = server.request(token, &format!("GET {path}"), &[], b"").await;
                assert_eq!(response.status, 401, "{path}");
                let well_known = format!("{base}/.well-known/oauth-protected-resource{about}");
                let expected = format!("Bearer realm=\"stead\", resource_metadata=\"{well_known}\"");
                assert_eq!(response.header("www-authenticate"), Some(expected.as_str()), "{path}");
                let told = server.request("", &format!("GET {}", &well_known[base.len()..]), &[], b"").await;
                assert_eq!(told.status, 200);
                let resource = format!("{base}{about}");
                let metadata = json!({
                    "resource": resource, "authorization_servers": [AUTHORIZATION_SERVER],
                    "bearer_methods_supported": ["header"], "resource_name": "stead"
                });
                assert_eq!(told.json(), metadata, "{path}");
            }
        }
        server.shut_down().await;
    }
}

#[tokio::test]
async fn metadata_only_for_protected_routes_and_valid_hosts() {
    let server = start_server(UrlScheme::Http).await;
    let well_known = "GET /.well-known/oauth-protected-resource";
    for odd in ["/health", "/nowhere", "/mcp%22,%20x=%22", "/.well-known/oauth-protected-resource"] {
        assert_eq!(server.request("", &format!("{well_known}{odd}"), &[], b"").await.status, 404, "{odd}");
    }
    assert_eq!(server.request("", "GET /.well-known/openid-configuration", &[], b"").await.status, 401);
    let foreign = b"GET /.well-known/oauth-protected-resource HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(server.send_raw(foreign).await.status, 403);
    let post = server.request("", "POST /.well-known/oauth-protected-resource", &[], b"{}").await;
    assert_eq!(post.status, 405);
    server.shut_down().await;
}

#[tokio::test]
async fn no_metadata_without_authorization_server() {
    let server = TestHttpServer::start().await;
    let response = server.request("", "GET /mcp", &[], b"").await;
    assert_eq!((response.status, response.header("www-authenticate")), (401, Some("Bearer realm=\"stead\"")));
    let told = server.request("", "GET /.well-known/oauth-protected-resource", &[], b"").await;
    assert_eq!(told.status, 404);
    server.shut_down().await;
}
