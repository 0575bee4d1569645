package deploy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// objects are those of the manifests, by kind/name.
type objects map[string]metav1.Object

// kinds makes an empty object for each kind that a manifest may have. A Secret is not among them: secrets are made by hand and referred to.
var kinds = map[string]func() metav1.Object{
	"v1 Namespace":                           func() metav1.Object { return new(corev1.Namespace) },
	"v1 Service":                             func() metav1.Object { return new(corev1.Service) },
	"apps/v1 Deployment":                     func() metav1.Object { return new(appsv1.Deployment) },
	"apps/v1 StatefulSet":                    func() metav1.Object { return new(appsv1.StatefulSet) },
	"policy/v1 PodDisruptionBudget":          func() metav1.Object { return new(policyv1.PodDisruptionBudget) },
	"autoscaling/v2 HorizontalPodAutoscaler": func() metav1.Object { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"networking.k8s.io/v1 NetworkPolicy":     func() metav1.Object { return new(networkingv1.NetworkPolicy) },
}

// decode reads a manifest; a key that the API does not have, or has twice, is an error.
func decode(b []byte) (objects, error) {
	out := objects{}
	for i, doc := range bytes.Split(b, []byte("\n---\n")) {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &head); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		empty, ok := kinds[head.APIVersion+" "+head.Kind]
		if !ok {
			return nil, fmt.Errorf("document %d: kind %s %s: not one of those that are checked", i+1, head.APIVersion, head.Kind)
		}
		o := empty()
		if err := yaml.UnmarshalStrict(doc, o); err != nil {
			return nil, fmt.Errorf("document %d, %s: %w", i+1, head.Kind, err)
		}
		key := head.Kind + "/" + o.GetName()
		if out[key] != nil || o.GetName() == "" {
			return nil, fmt.Errorf("document %d: %s is there twice, or has no name", i+1, key)
		}
		out[key] = o
	}
	return out, nil
}

func readManifests(t *testing.T) objects {
	t.Helper()
	var k struct {
		APIVersion         string `json:"apiVersion"`
		Kind               string `json:"kind"`
		Namespace          string `json:"namespace"`
		Resources          []string
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		} `json:"configMapGenerator"`
	}
	b, err := os.ReadFile("kubernetes/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(b, &k); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	listed := append([]string{"kustomization.yaml"}, k.Resources...)
	for _, m := range k.ConfigMapGenerator {
		for _, f := range m.Files {
			_, file, _ := strings.Cut(f, "=")
			listed = append(listed, file)
		}
	}
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	slices.Sort(listed)
	if !slices.Equal(files, listed) {
		t.Errorf("files %v, kustomization.yaml uses %v", files, listed)
	}
	all := objects{}
	for _, f := range k.Resources {
		b, err := os.ReadFile(filepath.Join("kubernetes", f))
		if err != nil {
			t.Fatal(err)
		}
		some, err := decode(b)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for key, o := range some {
			if _, isNamespace := o.(*corev1.Namespace); !isNamespace && o.GetNamespace() != k.Namespace {
				t.Errorf("%s: namespace %q, want %s", key, o.GetNamespace(), k.Namespace)
			}
			all[key] = o
		}
	}
	return all
}

// pods returns the templates of pods, by the name of what makes them.
func (all objects) pods() map[string]corev1.PodTemplateSpec {
	out := map[string]corev1.PodTemplateSpec{}
	for key, o := range all {
		switch o := o.(type) {
		case *appsv1.Deployment:
			out[key] = o.Spec.Template
		case *appsv1.StatefulSet:
			out[key] = o.Spec.Template
		}
	}
	return out
}

// selects reports whether a selector chooses pods of exactly one template, and returns it.
func (all objects) selects(s map[string]string) (corev1.PodTemplateSpec, bool) {
	var found []corev1.PodTemplateSpec
	for _, p := range all.pods() {
		fits := len(s) > 0
		for k, v := range s {
			fits = fits && p.Labels[k] == v
		}
		if fits {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return corev1.PodTemplateSpec{}, false
	}
	return found[0], true
}

func hasPort(p corev1.PodTemplateSpec, port intstr.IntOrString) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(q corev1.ContainerPort) bool {
			return q.Name == port.StrVal && port.Type == intstr.String || q.ContainerPort == port.IntVal && port.Type == intstr.Int
		})
	})
}

// TestPods: each pod satisfies the Pod Security Standard "restricted", has no token of the cluster, takes secrets as files from references, and its
// probes and mounts lead somewhere.
func TestPods(t *testing.T) {
	all := readManifests(t)
	if len(all.pods()) != 2 {
		t.Fatalf("%d kinds of pods", len(all.pods()))
	}
	for key, p := range all.pods() {
		bad := func(format string, args ...any) { t.Helper(); t.Errorf(key+": "+format, args...) }
		s := p.Spec.SecurityContext
		if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			bad("security context of the pod: %+v", s)
		}
		if a := p.Spec.AutomountServiceAccountToken; a == nil || *a {
			bad("a token of the cluster is mounted")
		}
		volumes := map[string]bool{}
		for _, v := range p.Spec.Volumes {
			volumes[v.Name] = true
			if v.HostPath != nil || v.Secret != nil && (v.Secret.DefaultMode == nil || *v.Secret.DefaultMode != 0o440) {
				bad("volume %s: %+v", v.Name, v.VolumeSource)
			}
		}
		if set, ok := all[key].(*appsv1.StatefulSet); ok {
			for _, claim := range set.Spec.VolumeClaimTemplates {
				volumes[claim.Name] = true
			}
		}
		for _, c := range p.Spec.Containers {
			if cs := c.SecurityContext; cs == nil || cs.AllowPrivilegeEscalation == nil || *cs.AllowPrivilegeEscalation || cs.ReadOnlyRootFilesystem == nil || !*cs.ReadOnlyRootFilesystem ||
				cs.Capabilities == nil || !slices.Equal(cs.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(cs.Capabilities.Add) > 0 {
				bad("security context of %s: %+v", c.Name, cs)
			}
			if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
				bad("%s says not what it needs: %+v", c.Name, c.Resources)
			}
			for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
				if probe == nil || probe.HTTPGet == nil && probe.TCPSocket == nil || probe.HTTPGet != nil && !hasPort(p, probe.HTTPGet.Port) || probe.TCPSocket != nil && !hasPort(p, probe.TCPSocket.Port) {
					bad("probe of %s: %+v", c.Name, probe)
				}
			}
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] {
					bad("mount %s: no such volume", m.Name)
				}
				delete(volumes, m.Name)
			}
			for _, e := range c.Env {
				if e.Value != "" {
					bad("variable %s has its value in the manifest", e.Name)
				}
			}
		}
		if len(volumes) > 0 {
			bad("volumes %v are not mounted", volumes)
		}
	}
}

// TestReferences: services, budgets, policies and the autoscaler choose pods that exist.
func TestReferences(t *testing.T) {
	all := readManifests(t)
	budgets := 0
	for key, o := range all {
		switch o := o.(type) {
		case *corev1.Service:
			p, ok := all.selects(o.Spec.Selector)
			for _, port := range o.Spec.Ports {
				target := port.TargetPort
				if target == (intstr.IntOrString{}) {
					target = intstr.FromInt32(port.Port)
				}
				ok = ok && hasPort(p, target)
			}
			if !ok {
				t.Errorf("%s: chooses no pods, or a port that they lack: %+v", key, o.Spec)
			}
		case *policyv1.PodDisruptionBudget:
			budgets++
			if _, ok := all.selects(o.Spec.Selector.MatchLabels); !ok || (o.Spec.MinAvailable == nil) == (o.Spec.MaxUnavailable == nil) {
				t.Errorf("%s: %+v", key, o.Spec)
			}
		case *autoscalingv2.HorizontalPodAutoscaler:
			ref := o.Spec.ScaleTargetRef
			d, ok := all[ref.Kind+"/"+ref.Name].(*appsv1.Deployment)
			if !ok || d.Spec.Replicas != nil || o.Spec.MinReplicas == nil || *o.Spec.MinReplicas < 3 || o.Spec.MaxReplicas <= *o.Spec.MinReplicas {
				t.Errorf("%s: %+v", key, o.Spec)
			}
			if m := o.Spec.Metrics[0]; m.External == nil || m.External.Target.AverageValue == nil {
				t.Errorf("%s: does not follow the uplink's queue: %+v", key, m)
			} else if b, err := os.ReadFile("../../cloud/metrics/metrics.go"); err != nil || !bytes.Contains(b, []byte(`"`+m.External.Metric.Name+`"`)) {
				t.Errorf("%s: kenneld has no metric %s (%v)", key, m.External.Metric.Name, err)
			}
		case *networkingv1.NetworkPolicy:
			for _, in := range o.Spec.Ingress {
				p, ok := all.selects(o.Spec.PodSelector.MatchLabels)
				for _, port := range in.Ports {
					if !ok || port.Port == nil || !hasPort(p, *port.Port) {
						t.Errorf("%s: port %+v of pods %v", key, port.Port, o.Spec.PodSelector.MatchLabels)
					}
				}
			}
		case *appsv1.StatefulSet:
			if _, ok := all["Service/"+o.Spec.ServiceName]; !ok || o.Spec.Replicas == nil || *o.Spec.Replicas != 3 {
				t.Errorf("%s: %+v", key, o.Spec)
			}
		}
	}
	if budgets != len(all.pods()) {
		t.Errorf("%d disruption budgets for %d kinds of pods", budgets, len(all.pods()))
	}
}

// TestDecodeRefuses: what the strict decoding is for.
func TestDecodeRefuses(t *testing.T) {
	const good = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports: [{port: 1}]\n"
	if _, err := decode([]byte(good)); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"a key that the API lacks":  good + "  prots: []\n",
		"a key twice":               good + "  ports: []\n",
		"a wrong type":              strings.Replace(good, "port: 1", "port: [1]", 1),
		"a secret":                  "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
		"an API that is gone":       strings.Replace(good, "apiVersion: v1", "apiVersion: v1beta1", 1),
		"an object without a name":  strings.Replace(good, "name: a", "namespace: a", 1),
		"two objects with one name": good + "\n---\n" + good,
	} {
		if o, err := decode([]byte(text)); err == nil {
			t.Errorf("%s is taken: %+v", name, o)
		}
	}
}
