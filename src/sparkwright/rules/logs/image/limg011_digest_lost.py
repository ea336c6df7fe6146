"""docker load does not bring the image's digest back.

Detects: references by digest that are not found on a node that got the image from an archive.
Why: an archive holds layers and tags; the repository digest is known only after a pull. A recipe pinned by digest
  then finds no such image on that node.
Evidence: `No such image` with a digest, after a load.
Remedy: pull the digest once (layers are there already), or compare image ids.
References: gb10.md C0 step 3; https://docs.docker.com/reference/cli/docker/image/load/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LIMG011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "image digest is lost by docker save and load"
CAUSE = "image-digest-not-restored-by-load"
SIGNS = (
    line(r"no such image: \S+@sha256:", LIKELY),
    near(
        r"docker (image )?(save|load)|loaded image",
        r"@sha256:|\bdigest|RepoDigests",
        r"no such image|not (restored|found|kept|there|present)|miss(es|ing)|fail(s|ed) .{0,40}(inspect|digest)"
        r"|untagged|\blost\b|empty|RepoDigests\W{1,4}\[\]|unable to find",
        sure=LIKELY,
        within=4,
    ),
    near(
        r"RepoDigests?",
        r"no RepoDigest|RepoDigests\W{1,4}\[\]"
        r"|(empty|missing|lost|loses|not (preserve|restore|propagate|keep)\w*).{0,40}digest"
        r"|digest.{0,40}(empty|missing|lost|not (preserved|restored|kept))",
        sure=LIKELY,
        within=4,
    ),
    line(r"unable to find image '\S+@sha256:[0-9a-f]{6,}\S*' locally", POSSIBLE),
    line(
        r"docker load\b.{0,60}(?:RepoDigest|digest)|RepoDigests?\b.{0,40}(?:empty|missing|lost|gone"
        r"|\[\]).{0,60}(?:load|save|tar)",
        LIKELY,
    ),
)
FIX = (
    "docker pull {repository}@sha256:{digest}   # on that node; downloads only the manifest when the layers are there",
    "docker image inspect -f '{{{{.Id}}}} {{{{.RepoDigests}}}}' {image}   # the Id must be equal on all nodes",
)
EXPLAINS = ()
