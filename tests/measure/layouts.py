"""Layouts of the public corpora."""

#: By folder: a pattern of the part of a path that names the release.
LAYOUTS: dict[str, str] = {
    "kafka_site_3x": r"(?<=/)3\d(?=/)",
    "installation_guide_9arch_19lang": r"installation-guide-[a-z0-9]+",
    "libreoffice_help_enUS_enGB": r"libreoffice-help-en-[a-z]{2}[^/]*|(?<=/)en-[A-Z]{2}(?=/)",
}
