package platform

import "encoding/json"

// Decimal is an exact number: the text that stands in the JSON.
type Decimal = json.Number

// NullableDecimal is a decimal, null, or absent, as the generator writes it for other types.
type NullableDecimal struct {
	value *Decimal
	isSet bool
}

func (v NullableDecimal) Get() *Decimal { return v.value }

func (v *NullableDecimal) Set(val *Decimal) { v.value, v.isSet = val, true }

func (v NullableDecimal) IsSet() bool { return v.isSet }

func (v *NullableDecimal) Unset() { v.value, v.isSet = nil, false }

func (v NullableDecimal) MarshalJSON() ([]byte, error) { return json.Marshal(v.value) }

func (v *NullableDecimal) UnmarshalJSON(src []byte) error {
	v.isSet = true
	return json.Unmarshal(src, &v.value)
}
