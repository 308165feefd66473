{{/* A value of any kind as the text of an environment variable. */}}
{{- define "neardup.text" -}}
{{- if kindIs "string" . -}}{{ . }}{{- else -}}{{ toJson . }}{{- end -}}
{{- end -}}

{{/* The environment that every process needs to reach Kafka. */}}
{{- define "neardup.kafkaEnv" -}}
{{- $kafka := .Values.kafka -}}
- name: NEARDUP_BOOTSTRAP
  value: {{ $kafka.bootstrap | quote }}
- name: NEARDUP_GROUP
  value: {{ $kafka.group | quote }}
{{- with $kafka.generation }}
- name: NEARDUP_GENERATION
  value: {{ . | quote }}
{{- end }}
{{- range $topic, $name := $kafka.topics }}
{{- if $name }}
- name: {{ printf "NEARDUP_%s_TOPIC" (upper $topic) }}
  value: {{ $name | quote }}
{{- end }}
{{- end }}
- name: NEARDUP_KAFKA__SECURITY_PROTOCOL
  value: {{ $kafka.security.protocol }}
{{- if hasPrefix "SASL" $kafka.security.protocol }}
- name: NEARDUP_KAFKA__SASL_MECHANISM
  value: {{ $kafka.sasl.mechanism }}
- name: NEARDUP_KAFKA__SASL_USERNAME
  {{- if $kafka.sasl.username }}
  value: {{ $kafka.sasl.username | quote }}
  {{- else }}
  valueFrom: {secretKeyRef: {name: {{ $kafka.sasl.secret }}, key: {{ $kafka.sasl.usernameKey }}}}
  {{- end }}
- name: NEARDUP_KAFKA__SASL_PASSWORD_FILE
  value: /etc/neardup/sasl/password
{{- end }}
{{- if $kafka.ca.secret }}
- name: NEARDUP_KAFKA__SSL_CA_LOCATION
  value: /etc/neardup/ca/ca.crt
{{- end }}
{{- if $kafka.certificate.secret }}
- name: NEARDUP_KAFKA__SSL_CERTIFICATE_LOCATION
  value: /etc/neardup/certificate/tls.crt
- name: NEARDUP_KAFKA__SSL_KEY_LOCATION
  value: /etc/neardup/certificate/tls.key
{{- if $kafka.certificate.passwordKey }}
- name: NEARDUP_KAFKA__SSL_KEY_PASSWORD_FILE
  value: /etc/neardup/certificate/password
{{- end }}
{{- end }}
{{- range $name, $value := $kafka.config }}
{{- $parts := splitn "." 2 $name }}
{{- $role := has $parts._0 (list "sketch" "match" "publish" "verdicts" "topics") }}
- name: {{ printf "NEARDUP_KAFKA__%s" (ternary (printf "%s__%s" $parts._0 (default "" $parts._1)) $name $role | replace "." "_" | upper) }}
  value: {{ include "neardup.text" $value | quote }}
{{- end }}
- name: NEARDUP_LOG_FORMAT
  value: {{ default "json" .Values.settings.log_format }}
{{- end -}}

{{/* The further environment of sketch and match. */}}
{{- define "neardup.roleEnv" -}}
{{ include "neardup.ownEnv" . }}
- name: NEARDUP_SEED_FILE
  value: /etc/neardup/seed/seed
{{- end -}}

{{/* The environment of processes with metrics. */}}
{{- define "neardup.ownEnv" -}}
{{ include "neardup.kafkaEnv" . }}
- name: NEARDUP_METRICS_HOST
  value: 0.0.0.0
- name: NEARDUP_METRICS_PORT
  value: "9464"
{{- range $name, $value := omit .Values.settings "log_format" }}
- name: {{ printf "NEARDUP_%s" (upper $name) }}
  value: {{ include "neardup.text" $value | quote }}
{{- end }}
{{- range $name, $value := .Values.decider }}
- name: {{ printf "NEARDUP_DECIDER__%s" (upper $name) }}
  value: {{ include "neardup.text" $value | quote }}
{{- end }}
{{- end -}}

{{/* Threads: as many as the container's processor limit, which the process itself cannot see. */}}
{{- define "neardup.threadsEnv" -}}
{{- $resources := index . 1 -}}
{{- if not (hasKey (index . 0).Values.settings "threads") -}}
{{- if dig "limits" "cpu" "" $resources }}
- name: NEARDUP_THREADS
  valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1"}}
{{- else if dig "requests" "cpu" "" $resources }}
- name: NEARDUP_THREADS
  valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: "1"}}
{{- end }}
{{- end }}
{{- end -}}

{{- define "neardup.kafkaMounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if hasPrefix "SASL" .Values.kafka.security.protocol }}
- {name: sasl, mountPath: /etc/neardup/sasl, readOnly: true}
{{- end }}
{{- if .Values.kafka.ca.secret }}
- {name: ca, mountPath: /etc/neardup/ca, readOnly: true}
{{- end }}
{{- if .Values.kafka.certificate.secret }}
- {name: certificate, mountPath: /etc/neardup/certificate, readOnly: true}
{{- end }}
{{- end -}}

{{- define "neardup.kafkaVolumes" -}}
{{- $kafka := .Values.kafka -}}
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
{{- if hasPrefix "SASL" $kafka.security.protocol }}
- name: sasl
  secret:
    secretName: {{ $kafka.sasl.secret }}
    defaultMode: 0440
    items: [{key: {{ $kafka.sasl.passwordKey }}, path: password}]
{{- end }}
{{- with $kafka.ca }}
{{- if .secret }}
- name: ca
  secret:
    secretName: {{ .secret }}
    items: [{key: {{ .key }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- with $kafka.certificate }}
{{- if .secret }}
- name: certificate
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    items:
      - {key: {{ .certificateKey }}, path: tls.crt}
      - {key: {{ .keyKey }}, path: tls.key}
      {{- if .passwordKey }}
      - {key: {{ .passwordKey }}, path: password}
      {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The settings that the Pod Security level "restricted" requires. */}}
{{- define "neardup.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "neardup.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "neardup.container" -}}
image: {{ include "neardup.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- include "neardup.containerSecurity" . | nindent 2 }}
terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}

{{/* Fields of all pods: no token is mounted, and no address of a service becomes a variable. */}}
{{- define "neardup.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- include "neardup.podSecurity" . | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "neardup.placing" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* A role that does not start in time is restarted. A role that still catches up is alive, but not ready. */}}
{{- define "neardup.probes" -}}
startupProbe:
  httpGet: {path: /live, port: metrics}
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  httpGet: {path: /live, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /ready, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
# The first process of a container does not hear a SIGTERM before it asks for it: a role that has just begun is waited
# for, else the pod would stay for its whole grace period.
lifecycle:
  preStop:
    exec:
      command:
        - python3
        - -c
        - |
          import time, urllib.error, urllib.request
          for _ in range(100):
              try:
                  urllib.request.urlopen("http://127.0.0.1:9464/live", timeout=1)
                  break
              except urllib.error.HTTPError:
                  break
              except OSError:
                  time.sleep(0.1)
{{- end -}}
