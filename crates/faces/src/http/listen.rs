//! Connections: taken in one by one, bounded in number and in time, and ended in good order. Over TCP, or over a socket in
//! the file system, where the kernel says whose process is at the other end. Over TCP it may be made private first; until it
//! is, it has its place among the connections and little time.

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
    Peer,
    hall::{Hall, Stopping},
    limits::{CONNECTIONS_MAX, HEAD_BYTES_MAX, HEAD_WAIT, HEADERS_MAX, SEND_WAIT, STOP_WAIT},
    patient::Patient,
    routes,
    strangers::{Crowd, Unproven},
    tls::Tls,
};

/// How long taking in connections pauses when the machine has no more to give.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// Where connections come from.
pub enum Listener {
    /// An address and a port.
    Tcp(TcpListener),
    /// The same, made private.
    Tls(TcpListener, Arc<Tls>),
    /// A socket in the file system, and the user whose processes need no token.
    Unix(UnixListener, u32),
}

/// Serves until the hall is stopped; then what runs is finished, within a bounded time.
///
/// Must run inside a tokio runtime; calls occupy its blocking threads.
pub async fn serve(hall: Arc<Hall>, listener: Listener) {
    let router = routes::router(hall.clone());
    let slots = Arc::new(Semaphore::new(hall.keeping.connections.unwrap_or(CONNECTIONS_MAX)));
    let mut stopping = hall.stopping();
    let mut connections = JoinSet::new();
    loop {
        // Also a full house hears that it is to stop.
        let next = async { (slots.clone().acquire_owned().await, accept(&listener).await) };
        let next = tokio::select! {
            () = stopping.begun() => break,
            next = next => next,
        };
        while connections.try_join_next().is_some() {}
        let (slot, one) = match next {
            (Ok(slot), Ok(one)) => (slot, one),
            (Err(_), _) => break,
            (Ok(_), Err(_)) => {
                tokio::time::sleep(AFTER_REFUSAL).await;
                continue;
            }
        };
        let Ok(unproven) = one.met(&hall) else {
            // Not even an answer: what it costs is what the limit is there for.
            hall.metrics.crowded_out();
            continue;
        };
        let stopping = hall.stopping();
        let connection =
            Connection { hall: hall.clone(), router: router.clone(), stopping, unproven, _slot: slot };
        match one {
            Accepted::Tls(stream, tls, _) => connections.spawn(connection.secure(stream, tls)),
            Accepted::Tcp(stream, _) => connections.spawn(connection.serve(stream, Peer::Network)),
            Accepted::Unix(stream, peer) => connections.spawn(connection.serve(stream, peer)),
        };
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    drop(tokio::time::timeout(STOP_WAIT, finished).await);
}

enum Accepted {
    Tcp(TcpStream, IpAddr),
    Tls(TcpStream, Arc<Tls>, IpAddr),
    Unix(UnixStream, Peer),
}

impl Accepted {
    /// Counts it among the strangers of its address. The kernel says who comes through a socket in the file system.
    fn met(&self, hall: &Hall) -> Result<Unproven, Crowd> {
        match self {
            Accepted::Tcp(_, from) | Accepted::Tls(_, _, from) => hall.strangers.meet(*from),
            Accepted::Unix(..) => Ok(Unproven::default()),
        }
    }
}

async fn accept(listener: &Listener) -> io::Result<Accepted> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, from) = prompt(listener).await?;
            Ok(Accepted::Tcp(stream, from))
        }
        Listener::Tls(listener, tls) => {
            let (stream, from) = prompt(listener).await?;
            Ok(Accepted::Tls(stream, tls.clone(), from))
        }
        Listener::Unix(listener, user) => {
            let (stream, _) = listener.accept().await?;
            let peer = match stream.peer_cred() {
                Ok(cred) if cred.uid() == *user => Peer::SameUser,
                Ok(_) | Err(_) => Peer::OtherUser,
            };
            Ok(Accepted::Unix(stream, peer))
        }
    }
}

/// The next connection, and where it comes from. Answers are small and wanted at once.
async fn prompt(listener: &TcpListener) -> io::Result<(TcpStream, IpAddr)> {
    let (stream, from) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, from.ip()))
}

/// One connection.
struct Connection {
    hall: Arc<Hall>,
    router: Router,
    stopping: Stopping,
    unproven: Unproven,
    _slot: OwnedSemaphorePermit,
}

impl Connection {
    /// Serves when the connection is private; one that does not become so ends.
    async fn secure(mut self, stream: TcpStream, tls: Arc<Tls>) {
        let shaken = tokio::time::timeout(tls.wait, tls.acceptor().accept(stream));
        let shaken = tokio::select! {
            () = self.stopping.begun() => return,
            shaken = shaken => shaken,
        };
        if let Ok(Ok(stream)) = shaken {
            self.serve(stream, Peer::Network).await;
        }
    }

    async fn serve(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: Peer) {
        self.hall.metrics.connected();
        let unproven = self.unproven.clone();
        let service =
            self.router.clone().map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(peer);
                request.extensions_mut().insert(unproven.clone());
                request.map(axum::body::Body::new)
            });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WAIT)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(
                TokioIo::new(Patient::new(stream, SEND_WAIT)),
                TowerToHyperService::new(service),
            )
            .with_upgrades();
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stopping.begun() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // How a connection ended is its client's affair.
        drop(ended);
        self.hall.metrics.disconnected();
    }
}
