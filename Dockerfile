# pyrag serve with the bundled corpus and the embedded engine: needs no network, no GPU and no model server.
#   docker build -t pyrag .
#   docker run --rm -p 127.0.0.1:8010:8010 -e PYRAG_SERVE_API_KEY=a-key-of-16-characters pyrag
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE pyrag_runtime.py ./
COPY pyrag pyrag
COPY pyrag_helpers pyrag_helpers
COPY sandbox sandbox
COPY prompts prompts
COPY rl rl
RUN python -m venv /opt/pyrag \
    && /opt/pyrag/bin/pip install --no-cache-dir --disable-pip-version-check '.[embedded,serve,mcp,docs]' \
    && /opt/pyrag/bin/python -m compileall -q /opt/pyrag

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="pyrag" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 pyrag \
    && useradd --no-log-init --uid 10001 --gid pyrag --create-home pyrag \
    && install -d -o pyrag -g pyrag /data
COPY --from=build /opt/pyrag /opt/pyrag
ENV PATH=/opt/pyrag/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8010
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8010/healthz', timeout=4)"]
ENTRYPOINT ["pyrag"]
# An address that other machines reach needs PYRAG_SERVE_API_KEY; without it the server says so and ends.
CMD ["serve", "--host", "0.0.0.0"]
