{{/* The name of everything: that of the release, with the chart's unless it is in there. */}}
{{- define "ringleaf.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Names of cluster-wide objects: two releases of one name may be in two namespaces. */}}
{{- define "ringleaf.wide" -}}
{{- printf "%s-%s" .Release.Namespace (include "ringleaf.fullname" .) | trunc 120 | trimSuffix "-" -}}
{{- end -}}

{{- define "ringleaf.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ringleaf.labels" -}}
{{ include "ringleaf.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "ringleaf.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "ringleaf.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is empty, want the name of an account; hint: or serviceAccount.create=true" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "ringleaf.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* The peers that may read metrics: the namespaces and peers that are named, and no others. */}}
{{- define "ringleaf.ingress" -}}
{{- if or .of.metricsNamespaces .of.from -}}
ingress:
- ports:
  - {protocol: TCP, port: {{ .port }}}
  from:
  {{- range .of.metricsNamespaces }}
  - namespaceSelector:
      matchLabels: {kubernetes.io/metadata.name: {{ . }}}
  {{- end }}
  {{- with .of.from }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- else -}}
ingress: []
{{- end -}}
{{- end -}}

{{/* Whether the API server has policies that refuse; Helm without one knows versions only. */}}
{{- define "ringleaf.validating" -}}
{{- if or (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) -}}yes{{- end -}}
{{- end -}}

{{/* Whether there is a leader that writes, and the API server can tell it from others. */}}
{{- define "ringleaf.fenced" -}}
{{- if and .Values.fence.enabled .Values.leaderElection.enabled (include "ringleaf.writes" .) (include "ringleaf.validating" .) -}}yes{{- end -}}
{{- end -}}

{{/* Whether the API server is to guard the annotations that say which pod holds which chips. */}}
{{- define "ringleaf.guarded" -}}
{{- if and .Values.chipGuard.enabled (include "ringleaf.writes" .) (include "ringleaf.validating" .) -}}yes{{- end -}}
{{- end -}}

{{/* The users that may write them, the scheduler first. */}}
{{- define "ringleaf.chipWriters" -}}
{{- $users := list (printf "system:serviceaccount:%s:%s" .Release.Namespace (include "ringleaf.serviceAccount" .)) -}}
{{- range .Values.chipGuard.serviceAccounts -}}
{{- $users = append $users (printf "system:serviceaccount:%s" (replace "/" ":" .)) -}}
{{- end -}}
{{- toJson (concat $users .Values.chipGuard.users) -}}
{{- end -}}

{{/* Whether the definition of PodGroup is this chart's, which has a status of its own. */}}
{{- define "ringleaf.ownPodGroups" -}}
{{- $there := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "podgroups.scheduling.volcano.sh" -}}
{{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $there -}}
{{- $known := .Capabilities.APIVersions.Has "scheduling.volcano.sh/v1beta1/PodGroup" -}}
{{- if and .Values.crds.install (or (and $there (eq $owner .Release.Name)) (and (not $there) (not $known))) -}}yes{{- end -}}
{{- end -}}

{{/* Whether it runs beside another scheduler, whose pods it leaves alone. */}}
{{- define "ringleaf.isBeside" -}}
{{- if or .Values.shadow.enabled (include "ringleaf.isCanary" .) -}}yes{{- end -}}
{{- end -}}

{{/* Whether it binds anything: a mere shadow does not. */}}
{{- define "ringleaf.writes" -}}
{{- if or (not .Values.shadow.enabled) (include "ringleaf.isCanary" .) -}}yes{{- end -}}
{{- end -}}

{{/* A mere shadow needs no leader, and two would judge everything twice. */}}
{{- define "ringleaf.replicas" -}}
{{- ternary .Values.replicas 1 (eq "yes" (include "ringleaf.writes" .)) -}}
{{- end -}}

{{- define "ringleaf.isCanary" -}}
{{- if or .Values.canary.queues .Values.canary.namespaces -}}yes{{- end -}}
{{- end -}}

{{/* The version in which the API server rewrites pods by policy; empty where it cannot. */}}
{{- define "ringleaf.mutating" -}}
{{- if or (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") (semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version) -}}
admissionregistration.k8s.io/v1
{{- else if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy" -}}
admissionregistration.k8s.io/v1beta1
{{- end -}}
{{- end -}}

{{/* What tells the two schedulers apart, where one name was given to both. */}}
{{- define "ringleaf.twoNames" -}}
{{- $others := without .Values.schedulerNames .Values.shadow.schedulerName -}}
{{- if $others -}}
schedulerNames={{ printf "{%s}" (join "," $others) }}
{{- else if ne .Values.shadow.schedulerName "ringleaf" -}}
schedulerNames={ringleaf}
{{- else -}}
shadow.schedulerName=volcano
{{- end -}}
{{- end -}}

{{/* Values that each may have and not together. */}}
{{- define "ringleaf.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElection.enabled) -}}
{{- fail (printf "replicas is %d and leaderElection.enabled is false: all would give away the same chips; hint: replicas=1" (int .Values.replicas)) -}}
{{- end -}}
{{- if and (include "ringleaf.isBeside" .) (has .Values.shadow.schedulerName .Values.schedulerNames) -}}
{{- $words := ternary "both schedulers would bind its pods" "it would be a shadow of itself" (eq "yes" (include "ringleaf.isCanary" .)) -}}
{{- fail (printf "schedulerNames has %q, as shadow.schedulerName is: %s; hint: %s" .Values.shadow.schedulerName $words (include "ringleaf.twoNames" .)) -}}
{{- end -}}
{{- if and .Values.summary.enabled .Values.summary.withScheduler -}}
{{- fail "summary.enabled and summary.withScheduler are both true: two would write the same summaries; hint: one of them" -}}
{{- end -}}
{{- if and .Values.summary.withScheduler (not (include "ringleaf.writes" .)) -}}
{{- fail "summary.withScheduler is true and shadow.enabled is: a shadow writes nothing; hint: summary.enabled=true" -}}
{{- end -}}
{{- with .Values.networkPolicy -}}
{{- if and .enabled $.Values.serviceMonitor.enabled (not .metricsNamespaces) (not .from) -}}
{{- fail "serviceMonitor.enabled is true and no namespace may ask for metrics; hint: networkPolicy.metricsNamespaces={NAMESPACE}, the one of Prometheus" -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraArgs -}}
{{- if regexMatch "^--(scheduler-name|scheduler-conf|healthz-address|shadow|shadow-name|with-summary|canary-queue|canary-namespace|(no-)?leader-elect.*)(=|$)" . -}}
{{- fail (printf "extraArgs has %s, which the chart gives by values of its own; hint: schedulerNames, configuration, healthPort, shadow, canary, summary, leaderElection" (first (splitList "=" .))) -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.existingConfigMap) (hasKey (fromYaml .Values.configuration) "Error") -}}
{{- fail "configuration is no YAML mapping, want actions and tiers; hint: ringleaf check-conf FILE, then --set-file configuration=FILE" -}}
{{- end -}}
{{- end -}}
