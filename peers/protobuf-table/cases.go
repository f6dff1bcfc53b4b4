package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand"
	"reflect"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// writeCases prints random objects of every kind as a Go client would send them, and as Go itself reads them back.
func writeCases(out io.Writer, types *runtime.Scheme, seed int64, count int) {
	random := rand.New(rand.NewSource(seed))
	serializer := protobuf.NewSerializer(types, types)
	for _, gvk := range kinds(types) {
		for range count {
			object, err := types.New(gvk)
			if err != nil {
				log.Fatal(err)
			}
			fill(random, reflect.ValueOf(object).Elem(), 0)
			object.GetObjectKind().SetGroupVersionKind(gvk)
			var body bytes.Buffer
			if err := serializer.Encode(object, &body); err != nil {
				log.Fatalf("%s: %v", gvk, err)
			}
			read, _, err := serializer.Decode(body.Bytes(), nil, nil)
			if err != nil {
				log.Fatalf("%s: %v", gvk, err)
			}
			text, err := json.Marshal(read)
			if err != nil {
				log.Fatalf("%s: %v", gvk, err)
			}
			fmt.Fprintf(out, "%s\t%s\n", base64.StdEncoding.EncodeToString(body.Bytes()), text)
		}
	}
}

// fill gives a value random content: about half of the optional fields, lists and maps of up to two, zeros now and then.
func fill(random *rand.Rand, value reflect.Value, depth int) {
	if fillSpecial(random, value) {
		return
	}
	some := depth < 12 && random.Intn(2+depth/3) == 0
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			if _, sent := value.Type().Field(i).Tag.Lookup("protobuf"); sent {
				fill(random, value.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if some {
			value.Set(reflect.New(value.Type().Elem()))
			fill(random, value.Elem(), depth+1)
		}
	case reflect.Slice:
		if some {
			value.Set(reflect.MakeSlice(value.Type(), random.Intn(3), 3))
			for i := range value.Len() {
				fill(random, value.Index(i), depth+1)
			}
		}
	case reflect.Map:
		if some {
			value.Set(reflect.MakeMap(value.Type()))
			for range random.Intn(3) {
				key, item := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
				key.SetString(text(random))
				fill(random, item, depth+1)
				value.SetMapIndex(key, item)
			}
		}
	case reflect.String:
		if random.Intn(2) == 0 {
			value.SetString(text(random))
		}
	case reflect.Bool:
		value.SetBool(random.Intn(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(int64(random.Intn(5) - 1))
	case reflect.Uint8, reflect.Uint32:
		value.SetUint(uint64(random.Intn(256)))
	case reflect.Float64:
		value.SetFloat(float64(random.Intn(9)-4) / 2)
	default:
		log.Fatalf("no way to fill a %s", value.Type())
	}
}

// fillSpecial handles the types whose fields aren't free.
func fillSpecial(random *rand.Rand, value reflect.Value) bool {
	seconds := random.Int63n(4_000_000_000) - 1_000_000_000
	switch typed := value.Addr().Interface().(type) {
	case *metav1.Time:
		if random.Intn(3) > 0 {
			*typed = metav1.Unix(seconds, 0)
		}
	case *metav1.MicroTime:
		if random.Intn(3) > 0 {
			*typed = metav1.MicroTime{Time: time.Unix(seconds, random.Int63n(1_000_000_000))}
		}
	case *metav1.Duration:
		typed.Duration = time.Duration(random.Int63n(100) * seconds)
	case *resource.Quantity:
		if random.Intn(3) > 0 {
			*typed = *resource.NewMilliQuantity(random.Int63n(100_000), resource.DecimalSI)
		}
	case *intstr.IntOrString:
		if *typed = intstr.FromInt32(int32(random.Intn(9000))); random.Intn(2) == 0 {
			*typed = intstr.FromString(text(random))
		}
	case *runtime.RawExtension:
		typed.Raw = raw(random)
	case *metav1.FieldsV1:
		typed.Raw = []byte(`{"f:` + text(random) + `":{}}`)
	case *apiextensions.JSON:
		typed.Raw = raw(random)
	case *apiextensions.JSONSchemaPropsOrBool:
		if typed.Allows = random.Intn(2) == 0; random.Intn(2) == 0 {
			typed.Allows, typed.Schema = true, &apiextensions.JSONSchemaProps{Type: text(random)}
		}
	case *apiextensions.JSONSchemaPropsOrArray:
		if random.Intn(2) == 0 {
			typed.JSONSchemas = []apiextensions.JSONSchemaProps{{Type: text(random)}, {}}
		} else {
			typed.Schema = &apiextensions.JSONSchemaProps{Format: text(random)}
		}
	case *apiextensions.JSONSchemaPropsOrStringArray:
		if random.Intn(2) == 0 {
			typed.Property = []string{text(random), ""}
		} else {
			typed.Schema = &apiextensions.JSONSchemaProps{Title: text(random)}
		}
	default:
		return false
	}
	return true
}

func raw(random *rand.Rand) []byte {
	documents := []string{`{"apiVersion":"v1","kind":"List","a":[1,2.5,null]}`, `{}`, `{"kind":"X","b":{"c":"d"}}`}
	return []byte(documents[random.Intn(len(documents))])
}

func text(random *rand.Rand) string {
	words := []string{"alpha", "b-2", "ümlaut", "a/b", "x y", "<tag>", "0"}
	return words[random.Intn(len(words))] + fmt.Sprint(random.Intn(100))
}
