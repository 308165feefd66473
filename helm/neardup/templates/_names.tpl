{{- define "neardup.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The prefix of every name: 40 characters at most, so that names with a suffix have at most 63. */}}
{{- define "neardup.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "neardup.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "neardup.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "neardup.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{ include "neardup.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "neardup.selector" -}}
app.kubernetes.io/name: {{ include "neardup.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "neardup.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "neardup.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "neardup.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "neardup.seedSecret" -}}
{{- default (printf "%s-seed" (include "neardup.fullname" .)) .Values.seed.existingSecret -}}
{{- end -}}

{{/* The transactional id: one writer of verdicts only; two would fence each other for ever. */}}
{{- define "neardup.identity" -}}
{{- include "neardup.group" (list . "match") -}}
{{- end -}}

{{/* The consumer group of a role. */}}
{{- define "neardup.group" -}}
{{- $kafka := (index . 0).Values.kafka -}}
{{- printf "%s.%s" $kafka.group (index . 1) -}}
{{- with $kafka.generation }}.{{ . }}{{ end -}}
{{- end -}}

{{/* The address of the matchers' metrics. */}}
{{- define "neardup.matcherMetrics" -}}
{{- $name := include "neardup.fullname" . -}}
{{- range $place := until (ternary 2 1 .Values.matcher.standby) -}}
{{ if $place }},{{ end }}http://{{ $name }}-matcher-{{ $place }}.{{ $name }}-metrics:9464/metrics
{{- end -}}
{{- end -}}

{{/* The views as a peer of a NetworkPolicy, if they are enabled. */}}
{{- define "neardup.viewsPeer" -}}
{{- if .Values.views.enabled -}}
- podSelector:
    matchLabels:
      {{- include "neardup.selector" . | nindent 6 }}
      app.kubernetes.io/component: views
{{- end -}}
{{- end -}}
