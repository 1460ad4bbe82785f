# The image of the Icetower server: `docker build -t icetower .`

# ---- build: a virtual environment with the locked packages and the wheel of this folder
FROM python:3.11-slim AS build

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source

# Packages change less often than code: their layer is built first and kept. The lock files are complete.
COPY requirements/server.lock requirements/build.lock requirements/
RUN python -m venv /opt/icetower \
    && /opt/icetower/bin/pip install --no-deps --require-hashes --requirement requirements/server.lock
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-deps --require-hashes --requirement requirements/build.lock

COPY pyproject.toml README.md LICENSE openapi.yaml icetower_pytest.py ./
COPY migrations migrations
COPY app app
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/icetower/bin/pip install --no-deps /wheels/*.whl

# ---- run: the environment and a user that owns nothing but its data folder
FROM python:3.11-slim

LABEL org.opencontainers.image.title="icetower" \
    org.opencontainers.image.description="A REST catalog server for Apache Iceberg tables" \
    org.opencontainers.image.licenses="Apache-2.0"

RUN useradd --system --uid 10001 --user-group --no-create-home icetower \
    && install --directory --owner icetower --group icetower /var/lib/icetower

COPY --from=build /opt/icetower /opt/icetower

# In a container the network is the container's own, so the server listens on all of it; what of that can be reached
# from outside is decided by the ports that are published. Database and warehouse lie in one volume until they are
# set to a Postgres and an object store.
ENV PATH="/opt/icetower/bin:$PATH" \
    PYTHONUNBUFFERED=1 \
    ICETOWER_HOST=0.0.0.0 \
    ICETOWER_PORT=8181 \
    ICETOWER_DATABASE_URL=sqlite:////var/lib/icetower/icetower.db \
    ICETOWER_DEFAULT_WAREHOUSE_LOCATION=/var/lib/icetower/warehouse

USER icetower
WORKDIR /var/lib/icetower
VOLUME /var/lib/icetower
EXPOSE 8181

# Any answer but a success makes urlopen raise, and so the check fail.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['ICETOWER_PORT'] + '/health', timeout=4)"]

CMD ["icetower", "serve"]
