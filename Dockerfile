# The server alone, in an image without a compiler. It runs as a user without rights and writes only to /var/lib/foldwork.
FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/target \
    CARGO_TARGET_DIR=/target cargo build --release --locked --package foldwork-server \
    && install -D -m 755 /target/release/foldwork /out/foldwork

FROM debian:bookworm-slim
# Certificates of identity providers and object stores.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/foldwork --create-home foldwork
COPY --from=build /out/foldwork /usr/local/bin/foldwork
USER 10001
WORKDIR /var/lib/foldwork
VOLUME /var/lib/foldwork
ENV FOLDWORK_HTTP__LISTEN=0.0.0.0:8080
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3 && head -1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["foldwork"]
CMD ["serve"]
