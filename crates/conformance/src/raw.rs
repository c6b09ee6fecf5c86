//! RPCs without types: messages as the bytes they are.

use bytes::{Buf as _, BufMut as _, Bytes};
use http::uri::PathAndQuery;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Calls `path` with an empty message and gives back the answer's bytes.
pub(crate) async fn unary(channel: Channel, path: &'static str) -> Result<Bytes, Status> {
    let mut client = tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX);
    client.ready().await.map_err(|error| Status::unknown(format!("the connection is lost: {error}")))?;
    let path = PathAndQuery::from_static(path);
    client.unary(Request::new(Bytes::new()), path, Raw).await.map(tonic::Response::into_inner)
}

#[derive(Clone, Copy, Debug, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, target: &mut EncodeBuf<'_>) -> Result<(), Status> {
        target.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = source.remaining();
        Ok(Some(source.copy_to_bytes(length)))
    }
}
