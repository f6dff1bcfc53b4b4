package main

import (
	"fmt"
	"io"
	"log"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// special are the types whose JSON form isn't that of their fields, and their letters in the table.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "t",
	reflect.TypeFor[metav1.MicroTime]():     "u",
	reflect.TypeFor[metav1.Duration]():      "D",
	reflect.TypeFor[resource.Quantity]():    "q",
	reflect.TypeFor[intstr.IntOrString]():   "x",
	reflect.TypeFor[runtime.RawExtension](): "r",
	reflect.TypeFor[metav1.FieldsV1]():      "r",
	reflect.TypeFor[apiextensions.JSON]():   "r",
}

// unions are the types that are one thing or another in JSON: a schema or a list, a boolean, a list of strings.
var unions = map[reflect.Type]string{
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "A",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "B",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "S",
}

// table numbers the messages in the order in which they are first met.
type table struct {
	number map[reflect.Type]int
	queue  []reflect.Type
}

// writeTable prints one line a kind ("K apiVersion kind message") and one a message ("M field;field;..."), where a field
// is "tag name flags type". Flags: * pointer, o left out when empty, z left out when zero, [ list, { map, e embedded.
// Types: s string, b boolean, i integer, n integer of 64 bits, d double, y bytes, l a list of strings that is a message of its own, m<number> a
// message, t time, u time with microseconds, D duration, q quantity, x integer or string, r raw JSON,
// A<number> B<number> S<number> one or the other.
func writeTable(out io.Writer, types *runtime.Scheme) {
	t := &table{number: map[reflect.Type]int{}}
	for _, gvk := range kinds(types) {
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		fmt.Fprintf(out, "K %s %s %d\n", apiVersion, kind, t.message(types.AllKnownTypes()[gvk]))
	}
	for i := 0; i < len(t.queue); i++ {
		fmt.Fprintf(out, "M %s\n", strings.Join(t.fields(t.queue[i]), ";"))
	}
}

func (t *table) message(typ reflect.Type) int {
	number, known := t.number[typ]
	if !known {
		number = len(t.queue)
		t.number[typ] = number
		t.queue = append(t.queue, typ)
	}
	return number
}

func (t *table) fields(typ reflect.Type) []string {
	var fields []string
	for i := range typ.NumField() {
		field := typ.Field(i)
		tag, ok := field.Tag.Lookup("protobuf")
		if !ok {
			continue // TypeMeta travels in the envelope
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			log.Fatalf("%s.%s has a protobuf tag and no JSON name", typ, field.Name)
		}
		flags := ""
		if field.Anonymous && name == "" || strings.Contains(options, "inline") {
			flags += "e"
		} else if name == "" {
			name = field.Name
		}
		if strings.Contains(options, "omitempty") {
			flags += "o"
		}
		if strings.Contains(options, "omitzero") {
			flags += "z"
		}
		shape, letter := t.shape(typ, field)
		number := strings.Split(tag, ",")[1]
		fields = append(fields, strings.Join([]string{number, name, flags + shape, letter}, " "))
	}
	return fields
}

func (t *table) shape(owner reflect.Type, field reflect.StructField) (string, string) {
	typ, shape := field.Type, ""
	if typ.Kind() == reflect.Pointer {
		typ, shape = typ.Elem(), "*"
	}
	switch {
	case messageOf(typ) || special[typ] != "":
	case typ.Kind() == reflect.Map:
		if typ.Key().Kind() != reflect.String {
			log.Fatalf("%s.%s: a map with keys of type %s", owner, field.Name, typ.Key())
		}
		typ, shape = typ.Elem(), shape+"{"
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() != reflect.Uint8:
		typ, shape = typ.Elem(), shape+"["
	}
	letter := t.letter(typ)
	if letter == "" || len(shape) > 1 {
		log.Fatalf("%s.%s: no way to write %s", owner, field.Name, field.Type)
	}
	return shape, letter
}

func (t *table) letter(typ reflect.Type) string {
	if letter := special[typ]; letter != "" {
		return letter
	}
	if letter := unions[typ]; letter != "" {
		return fmt.Sprint(letter, t.message(reflect.TypeFor[apiextensions.JSONSchemaProps]()))
	}
	switch typ.Kind() {
	case reflect.Struct:
		return fmt.Sprint("m", t.message(typ))
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int32, reflect.Uint8, reflect.Uint32:
		return "i"
	case reflect.Int, reflect.Int64:
		return "n"
	case reflect.Float64:
		return "d"
	case reflect.Slice:
		if messageOf(typ) && typ.Elem().Kind() == reflect.String {
			return "l"
		}
		if typ.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
	}
	return ""
}

// messageOf tells whether a type is a protobuf message of its own, also when it isn't a struct.
func messageOf(typ reflect.Type) bool {
	_, ok := reflect.PointerTo(typ).MethodByName("MarshalToSizedBuffer")
	return ok
}
