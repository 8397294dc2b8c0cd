# The Node release of package.json's optionalDependencies; test/packaging.test.ts keeps the two alike.
ARG NODE_VERSION=26.10.0
# The digests are those of the multi-platform images. `docker buildx imagetools inspect IMAGE` prints the current ones.
# Without a registry, scripts/check-image builds both images from Debian and this Node.
ARG BUILD_BASE=docker.io/library/node:${NODE_VERSION}-bookworm@sha256:2aaae6d91f99fee84cfc92da9b52c22a185752d247746052bbc3f961e44478c6
ARG BASE=docker.io/library/node:${NODE_VERSION}-bookworm-slim@sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2

FROM ${BUILD_BASE} AS build
# For the Kerberos binding, which has no prebuilt form. The PKCS#11 binding needs only the compiler that is there.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libkrb5-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY package.json package-lock.json ./
# What is compiled takes the headers of the image's own Node, from /usr/local/include.
RUN npm_config_nodedir=/usr/local npm ci --no-audit --no-fund
COPY tsconfig.json ./
COPY scripts/lib/bundle-server.ts ./scripts/lib/
COPY src ./src
COPY console ./console
# The image brings its own Node: the one npm pins for older machines stays out, as do the tools of development.
RUN npm run build \
 && npm prune --omit=dev --no-audit --no-fund \
 && rm -rf node_modules/.bin/node node_modules/node-linux-* node_modules/node-bin-*

FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libgssapi-krb5-2 \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o node -g node -m 0700 /var/lib/estuary
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY scripts/lib/healthcheck.js ./scripts/lib/
USER node
# EST, admin, and the optional listener for CRLs and OCSP.
EXPOSE 9443 9444 8080
VOLUME ["/var/lib/estuary"]
HEALTHCHECK --interval=30s --timeout=6s --start-period=20s --retries=3 \
  CMD ["node", "/app/scripts/lib/healthcheck.js"]
ENTRYPOINT ["node", "--disable-sigusr1", "/app/dist/server.js"]
CMD ["--config", "/etc/estuary/est.toml"]
