//! Where clients without a token are sent, when somebody was named, and that nothing changes in who is let in.

use faces::http::{Authorization, Keeping, Listener, Names, Way};
use serde_json::json;

use super::House;

const SERVER: &str = "https://login.example";

async fn house(way: Way) -> House {
    let authorization = Authorization { servers: vec![SERVER.to_owned()], way };
    let keeping = Keeping { authorization: Some(authorization), ..Keeping::default() };
    House::kept(Listener::Tcp, Names::loopback, keeping).await
}

#[tokio::test]
async fn a_client_without_a_token_is_told_where_to_go() {
    for (way, scheme) in [(Way::Http, "http"), (Way::Https, "https")] {
        let house = house(way).await;
        let base = format!("{scheme}://localhost:{}", house.port);
        for (path, about) in
            [("/mcp", "/mcp"), ("/mcp/comma", "/mcp/comma"), ("/rpc", "/rpc"), ("/nowhere", "")]
        {
            for token in ["", "wrong"] {
                let said = house.ask(token, &format!("GET {path}"), &[], b"").await;
                assert_eq!(said.status, 401, "{path}");
                let well_known = format!("{base}/.well-known/oauth-protected-resource{about}");
                let expected = format!("Bearer realm=\"stead\", resource_metadata=\"{well_known}\"");
                assert_eq!(said.header("www-authenticate"), Some(expected.as_str()), "{path}");
                let told = house.ask("", &format!("GET {}", &well_known[base.len()..]), &[], b"").await;
                assert_eq!(told.status, 200);
                let resource = format!("{base}{about}");
                let metadata = json!({
                    "resource": resource, "authorization_servers": [SERVER],
                    "bearer_methods_supported": ["header"], "resource_name": "stead"
                });
                assert_eq!(told.json(), metadata, "{path}");
            }
        }
        house.close().await;
    }
}

#[tokio::test]
async fn only_what_needs_a_token_has_metadata_and_hosts_are_judged_first() {
    let house = house(Way::Http).await;
    let well_known = "GET /.well-known/oauth-protected-resource";
    for odd in ["/health", "/nowhere", "/mcp%22,%20x=%22", "/.well-known/oauth-protected-resource"] {
        assert_eq!(house.ask("", &format!("{well_known}{odd}"), &[], b"").await.status, 404, "{odd}");
    }
    assert_eq!(house.ask("", "GET /.well-known/openid-configuration", &[], b"").await.status, 401);
    let foreign = b"GET /.well-known/oauth-protected-resource HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(house.raw(foreign).await.status, 403);
    let post = house.ask("", "POST /.well-known/oauth-protected-resource", &[], b"{}").await;
    assert_eq!(post.status, 405);
    house.close().await;
}

#[tokio::test]
async fn nothing_is_said_where_nobody_was_named() {
    let house = House::open().await;
    let said = house.ask("", "GET /mcp", &[], b"").await;
    assert_eq!((said.status, said.header("www-authenticate")), (401, Some("Bearer realm=\"stead\"")));
    let told = house.ask("", "GET /.well-known/oauth-protected-resource", &[], b"").await;
    assert_eq!(told.status, 404);
    house.close().await;
}
