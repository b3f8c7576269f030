# apidesk as an image: `docker build -t apidesk:0.1.0 .`; docs/operating.md says how it is run.

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

# Extras of pyproject.toml, between spaces. Versions come from requirements-dev.txt, which holds every
# extra; uv verifies the hashes that constraints name.
ARG EXTRAS="postgres redis"
COPY pyproject.toml requirements-dev.txt ./
RUN set --; for extra in $EXTRAS; do set -- "$@" --extra "$extra"; done; \
    /opt/uv/bin/uv pip install --python /opt/apidesk/bin/python --compile-bytecode \
      -c requirements-dev.txt -r pyproject.toml "$@"

COPY README.md ./
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
# A number, so that Kubernetes can see that it is not root.
RUN groupadd --gid 10001 apidesk \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin apidesk \
 && install --directory --owner=10001 --group=10001 /srv/data /srv/locks /srv/spool
COPY --from=build /opt/apidesk /opt/apidesk

# Nothing is written but to /srv/data (the embedded store and its database; unused where a Milvus server
# and PostgreSQL are named), APIDESK_SPOOL (questions on their way to the database, in /srv/data by
# default) and TMPDIR (the lock of ingestion runs): the root may be read-only. Bytecode was compiled
# above.
ENV PATH=/opt/apidesk/bin:$PATH \
    HOME=/tmp TMPDIR=/tmp \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# ./data of the settings' defaults is /srv/data: mount a named volume there.
WORKDIR /srv
USER 10001:10001

EXPOSE 8000
# Live, not ready: what is missing elsewhere is no reason to restart the process.
HEALTHCHECK --interval=15s --timeout=5s --start-period=180s --retries=3 \
  CMD ["python", "-c", "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', 8000, timeout=4); c.request('GET', '/health/live'); sys.exit(c.getresponse().status != 200)"]

ENTRYPOINT ["apidesk"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
