// Prints the protobuf layout of each kind of Kubernetes, and its JSON form in Go.
//
// The tags of the Go structs contain both. The .proto files lack omitted fields, pointers, and structs whose fields
// belong to their parent in JSON. record_protobuf.py runs this program.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Types with a JSON form of their own.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "@Time",
	reflect.TypeFor[metav1.MicroTime]():     "@MicroTime",
	reflect.TypeFor[metav1.Duration]():      "@Duration",
	reflect.TypeFor[metav1.FieldsV1]():      "@JSON",
	reflect.TypeFor[runtime.RawExtension](): "@JSON",
	reflect.TypeFor[apiextensionsv1.JSON](): "@JSON",
	reflect.TypeFor[resource.Quantity]():    "@Quantity",
	reflect.TypeFor[intstr.IntOrString]():   "@IntOrString",
}

// Types whose JSON form is that of one of their fields.
var choice = map[reflect.Type]bool{
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): true,
}

var (
	message    = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
	marshaller = reflect.TypeFor[json.Marshaler]()
)

type schema struct {
	// The fields of a message, by package and name.
	Messages map[string]map[string]string `json:"messages"`
	// The package of a kind, by API version and kind. Its message has the same name.
	Kinds map[string]map[string]string `json:"kinds"`
}

func main() {
	known := runtime.NewScheme()
	must(scheme.AddToScheme(known))
	known.AddKnownTypes(metav1.SchemeGroupVersion, &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{})
	must(apiextensionsv1.AddToScheme(known))
	must(apiregistrationv1.AddToScheme(known))
	found := schema{map[string]map[string]string{}, map[string]map[string]string{}}
	for gvk, kind := range known.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || !reflect.PointerTo(kind).Implements(message) {
			continue
		}
		version := gvk.GroupVersion().String()
		if found.Kinds[version] == nil {
			found.Kinds[version] = map[string]string{}
		}
		if gvk.Kind != kind.Name() {
			panic(fmt.Sprintf("%v is not named as %v", gvk, kind))
		}
		found.Kinds[version][gvk.Kind] = pkg(kind)
		found.add(kind)
	}
	must(json.NewEncoder(os.Stdout).Encode(found))
}

func (s *schema) add(t reflect.Type) {
	home := pkg(t)
	if _, done := s.Messages[home][t.Name()]; done || special[t] != "" {
		return
	}
	if reflect.PointerTo(t).Implements(marshaller) && !choice[t] {
		panic(fmt.Sprintf("%v writes its JSON itself", t))
	}
	if s.Messages[home] == nil {
		s.Messages[home] = map[string]string{}
	}
	s.Messages[home][t.Name()] = ""
	if t.Kind() != reflect.Struct {
		// A named list type is a message with the list as field 1.
		s.Messages[home][t.Name()] = "[]" + s.name(t.Elem(), home, false)
		return
	}
	fields := []string{}
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 3 {
			if field.Type != reflect.TypeFor[metav1.TypeMeta]() {
				panic(fmt.Sprintf("%v.%s has no number", t, field.Name))
			}
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case strings.Contains(options, "inline"):
			name = "~"
		case choice[t]:
			name = strings.TrimPrefix(tag[3], "name=")
		case name == "":
			panic(fmt.Sprintf("%v.%s has no name", t, field.Name))
		}
		if strings.Contains(options, "omitempty") {
			name += "?"
		}
		if strings.Contains(options, "omitzero") {
			name += "!"
		}
		fields = append(fields, tag[1]+" "+name+" "+s.name(field.Type, home, true))
	}
	s.Messages[home][t.Name()] = strings.Join(fields, "; ")
}

// Returns the type of a field. Messages of the same package are named without the package.
func (s *schema) name(t reflect.Type, home string, top bool) string {
	if special[t] != "" {
		return special[t]
	}
	own := reflect.PointerTo(t).Implements(message)
	switch {
	case t.Kind() == reflect.Pointer:
		return "*" + s.name(t.Elem(), home, false)
	case t.Kind() == reflect.Map && top && !own:
		return "map " + s.name(t.Elem(), home, false)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !own:
		return "bytes"
	case t.Kind() == reflect.Slice && top && !own:
		return "[]" + s.name(t.Elem(), home, false)
	case own:
		s.add(t)
		if pkg(t) == home {
			return t.Name()
		}
		return pkg(t) + "." + t.Name()
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return t.Kind().String()
	case reflect.Float64:
		return "double"
	}
	panic(fmt.Sprintf("%v cannot be described", t))
}

func pkg(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], "/")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
