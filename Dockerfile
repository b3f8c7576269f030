# The apidesk image: `docker build -t apidesk:0.1.0 .`. See docs/how-to/operate.md for how to run it.

FROM python:3.11.15-slim-trixie AS build
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 \
    UV_LINK_MODE=copy UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never

COPY requirements-uv.txt ./
RUN python -m venv /opt/uv \
 && /opt/uv/bin/pip install --quiet --require-hashes -r requirements-uv.txt \
 && python -m venv --without-pip /opt/apidesk

COPY requirements.txt ./
RUN /opt/uv/bin/uv pip install --python /opt/apidesk/bin/python --compile-bytecode \
      --require-hashes -r requirements.txt

# Extras of pyproject.toml, separated by spaces. Versions and hashes come from requirements-dev.txt, which
# contains every extra.
ARG EXTRAS="postgres redis"
COPY pyproject.toml requirements-dev.txt ./
RUN set --; for extra in $EXTRAS; do set -- "$@" --extra "$extra"; done; \
    /opt/uv/bin/uv pip install --python /opt/apidesk/bin/python --compile-bytecode \
      -c requirements-dev.txt -r pyproject.toml "$@"

COPY README.md ./
COPY deploy/wheel_build.py ./deploy/
COPY apidesk ./apidesk
COPY app ./app
COPY ingestion ./ingestion
COPY prompts ./prompts
COPY runnables ./runnables
COPY samples ./samples
COPY schemas ./schemas
RUN /opt/uv/bin/uv build --quiet --wheel --python /opt/apidesk/bin/python --out-dir dist \
      --require-hashes --build-constraints requirements-dev.txt \
 && /opt/uv/bin/uv pip install --python /opt/apidesk/bin/python --compile-bytecode \
      --no-deps --no-index dist/*.whl


FROM python:3.11.15-slim-trixie
# A numeric user lets Kubernetes verify runAsNonRoot.
RUN groupadd --gid 10001 apidesk \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin apidesk \
 && install --directory --owner=10001 --group=10001 /srv/data /srv/locks /srv/spool
COPY --from=build /opt/apidesk /opt/apidesk

# The root file system may be read-only. Written paths: /srv/data (embedded store and database, unused with
# a Milvus server and PostgreSQL), APIDESK_SPOOL (the outbox of records, in /srv/data by default) and
# TMPDIR (the lock of ingestion runs). Bytecode is compiled above.
ENV PATH=/opt/apidesk/bin:$PATH \
    HOME=/tmp TMPDIR=/tmp \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# The default ./data of the settings is /srv/data: mount a named volume there.
WORKDIR /srv
USER 10001:10001

EXPOSE 8000
# Liveness, not readiness: an unavailable dependency is no reason to restart the process.
HEALTHCHECK --interval=15s --timeout=5s --start-period=180s --retries=3 \
  CMD ["python", "-c", "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', 8000, timeout=4); c.request('GET', '/health/live'); sys.exit(c.getresponse().status != 200)"]

ENTRYPOINT ["apidesk"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
