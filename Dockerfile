# elench with the embedded models; everything but the build runs offline.
#   docker build -t elench .
#   docker run --rm -v "$PWD:/data" elench score answers.jsonl -m f1,equivalent -o scores.jsonl
FROM python:3.12-slim
ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1
RUN useradd --create-home elench
WORKDIR /opt/elench
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY packages packages
COPY src src
RUN pip install -c constraints.txt ./packages/elench-models ".[models,study]"
USER elench
RUN elench models pull && elench verify
WORKDIR /data
ENTRYPOINT ["elench"]
CMD ["--help"]
