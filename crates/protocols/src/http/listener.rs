//! Accepts connections over TCP, TLS or a Unix socket, limits the number of connections and their timeouts, and shuts
//! down gracefully. On a Unix socket, the kernel reports the user of the client. A connection counts towards the
//! connection limit before its TLS handshake, which has a short timeout.

use std::{io, net::IpAddr, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tower::ServiceExt;

use super::{
    SocketPeerOrigin, routes,
    state::{HttpServerState, ShutdownSignal},
    tls::ReloadableTlsConfig,
    unauthenticated::{TooManyUnauthenticated, UnauthenticatedConnectionPermit},
    write_timeout::WriteTimeoutStream,
};
use crate::limits::{
    CONNECTIONS_MAX, HEAD_BYTES_MAX, HEAD_READ_TIMEOUT, HEADERS_MAX, HTTP_SHUTDOWN_TIMEOUT, WRITE_TIMEOUT,
};

/// The delay before the next `accept` after an `accept` failed, for example because no file descriptors are left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A listening socket of the HTTP server.
pub enum HttpListener {
    Tcp(TcpListener),
    Tls(TcpListener, Arc<ReloadableTlsConfig>),
    /// The HTTP server listens on a Unix socket. Processes of the user with the given id need no token.
    Unix(UnixListener, u32),
}

/// Serves clients until [`HttpServerState::shut_down`] is called, and then finishes in-flight requests within a time
/// limit.
///
/// The server must run inside a tokio runtime. Requests of clients can occupy the runtime's blocking threads.
pub async fn serve(state: Arc<HttpServerState>, listener: HttpListener) {
    let router = routes::build_router(state.clone());
    let slots = Arc::new(Semaphore::new(state.options.connections_max.unwrap_or(CONNECTIONS_MAX)));
    let mut shutdown = state.shutdown_signal();
    let mut connections = JoinSet::new();
    loop {
        // The permit is acquired inside `select!`, so that a server without free slots can still shut down.
        let accept = async { (slots.clone().acquire_owned().await, accept_connection(&listener).await) };
        let accepted = tokio::select! {
            () = shutdown.until_shutdown() => break,
            accepted = accept => accepted,
        };
        while connections.try_join_next().is_some() {}
        let (permit, accepted) = match accepted {
            (Ok(permit), Ok(accepted)) => (permit, accepted),
            (Err(_), _) => break,
            (Ok(_), Err(_)) => {
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let Ok(unauthenticated) = accepted.register_unauthenticated(&state) else {
            // The connection is closed without a response, so that a refused connection costs little.
            state.metrics.count_refused_connection();
            continue;
        };
        let connection = HttpConnectionServer {
            state: state.clone(),
            router: router.clone(),
            shutdown: state.shutdown_signal(),
            unauthenticated,
            _permit: permit,
        };
        match accepted {
            AcceptedStream::Tls(stream, tls, _) => connections.spawn(connection.serve_tls(stream, tls)),
            AcceptedStream::Tcp(stream, _) => connections.spawn(connection.serve(stream, SocketPeerOrigin::Network)),
            AcceptedStream::Unix(stream, peer) => connections.spawn(connection.serve(stream, peer)),
        };
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    drop(tokio::time::timeout(HTTP_SHUTDOWN_TIMEOUT, finished).await);
}

enum AcceptedStream {
    Tcp(TcpStream, IpAddr),
    Tls(TcpStream, Arc<ReloadableTlsConfig>, IpAddr),
    Unix(UnixStream, SocketPeerOrigin),
}

impl AcceptedStream {
    /// A connection over a Unix socket has no address and is not counted as unauthenticated.
    fn register_unauthenticated(
        &self,
        state: &HttpServerState,
    ) -> Result<UnauthenticatedConnectionPermit, TooManyUnauthenticated> {
        match self {
            AcceptedStream::Tcp(_, address) | AcceptedStream::Tls(_, _, address) => {
                state.unauthenticated.register(*address)
            }
            AcceptedStream::Unix(..) => Ok(UnauthenticatedConnectionPermit::default()),
        }
    }
}

async fn accept_connection(listener: &HttpListener) -> io::Result<AcceptedStream> {
    match listener {
        HttpListener::Tcp(listener) => {
            let (stream, address) = accept_tcp(listener).await?;
            Ok(AcceptedStream::Tcp(stream, address))
        }
        HttpListener::Tls(listener, tls) => {
            let (stream, address) = accept_tcp(listener).await?;
            Ok(AcceptedStream::Tls(stream, tls.clone(), address))
        }
        HttpListener::Unix(listener, user) => {
            let (stream, _) = listener.accept().await?;
            let peer = match stream.peer_cred() {
                Ok(cred) if cred.uid() == *user => SocketPeerOrigin::SameUser,
                Ok(_) | Err(_) => SocketPeerOrigin::OtherUser,
            };
            Ok(AcceptedStream::Unix(stream, peer))
        }
    }
}

/// Nagle's algorithm is disabled, because responses are small.
async fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, IpAddr)> {
    let (stream, address) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, address.ip()))
}

struct HttpConnectionServer {
    state: Arc<HttpServerState>,
    router: Router,
    shutdown: ShutdownSignal,
    unauthenticated: UnauthenticatedConnectionPermit,
    _permit: OwnedSemaphorePermit,
}

impl HttpConnectionServer {
    async fn serve_tls(mut self, stream: TcpStream, tls: Arc<ReloadableTlsConfig>) {
        let handshake = tokio::time::timeout(tls.handshake_timeout, tls.acceptor().accept(stream));
        let handshake = tokio::select! {
            () = self.shutdown.until_shutdown() => return,
            handshake = handshake => handshake,
        };
        if let Ok(Ok(stream)) = handshake {
            self.serve(stream, SocketPeerOrigin::Network).await;
        }
    }

    async fn serve(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: SocketPeerOrigin) {
        self.state.metrics.connection_opened();
        let unauthenticated = self.unauthenticated.clone();
        let service = self.router.clone().map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(unauthenticated.clone());
            request.map(axum::body::Body::new)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_READ_TIMEOUT)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(
                TokioIo::new(WriteTimeoutStream::new(stream, WRITE_TIMEOUT)),
                TowerToHyperService::new(service),
            )
            .with_upgrades();
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.shutdown.until_shutdown() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // Connection errors are caused by the client, and are therefore not reported.
        drop(ended);
        self.state.metrics.connection_closed();
    }
}
