{{- define "tactus.fullname" -}}
{{- if contains "tactus" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-tactus" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tactus.selector" -}}
app.kubernetes.io/name: tactus
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tactus.labels" -}}
{{ include "tactus.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "tactus.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "tactus.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "tactus.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "tactus.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* tactus.image: dict "root" $ "own" of a pool */}}
{{- define "tactus.image" -}}
{{- $image := merge (dict) (.own | default dict) .root.Values.image }}
{{- printf "%s:%s" $image.repository ($image.tag | default .root.Chart.AppVersion) }}
{{- end }}

{{- /* A certificate of cert-manager's CSI driver: dict "root" $ "uri" of its holder. The names of files are Tactus'. */}}
{{- define "tactus.csi" -}}
csi:
  driver: csi.cert-manager.io
  readOnly: true
  volumeAttributes:
    csi.cert-manager.io/issuer-name: {{ required "tls.issuer.name: tls.mode csi needs an issuer of cert-manager" .root.Values.tls.issuer.name }}
    csi.cert-manager.io/issuer-kind: {{ .root.Values.tls.issuer.kind }}
    csi.cert-manager.io/uri-sans: spiffe://{{ .root.Values.tls.domain }}/{{ .uri }}
    csi.cert-manager.io/key-usages: digital signature,server auth,client auth
    csi.cert-manager.io/ca-file: ca.pem
    csi.cert-manager.io/certificate-file: cert.pem
    csi.cert-manager.io/privatekey-file: key.pem
    csi.cert-manager.io/fs-group: "10001"
{{- end }}
