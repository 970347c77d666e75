// Creates, lists and updates through a generated client, and is throttled, as its user would write it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"

	platform "example.com/platform"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	base, tenant, product := os.Getenv("BASE_URL"), os.Getenv("TENANT"), os.Getenv("PRODUCT")
	settings := platform.NewConfiguration()
	settings.Servers = platform.ServerConfigurations{{URL: base}}
	client := platform.NewAPIClient(settings)
	ctx := context.WithValue(context.Background(), platform.ContextAccessToken, os.Getenv("API_KEY"))

	line := platform.NewLine(product, "3", "12.5")
	draft := platform.NewInvoice(os.Getenv("CUSTOMER"), platform.EUR, []platform.Line{*line, *line})
	made, _, err := client.InvoicesAPI.CreateInvoice(ctx).XTenantSlug(tenant).IdempotencyKey("generated-3").Invoice(*draft).Execute()
	check(err)
	page, _, err := client.InvoicesAPI.ListInvoice(ctx).XTenantSlug(tenant).Limit(10).Execute()
	check(err)
	if page.Data[0].Id != made.Id {
		panic("the list lacks the invoice")
	}
	approved, _, err := client.InvoicesAPI.ApproveInvoice(ctx, made.Id).XTenantSlug(tenant).Execute()
	check(err)

	for number := 0; number < 60; number++ {
		price := platform.Decimal(fmt.Sprintf("1234567890123%02d.6789", number)) // more digits than a float64 holds
		patch := platform.NewProductPatch()
		patch.SetUnitPrice(price)
		for {
			update := client.ProductsAPI.UpdateProduct(ctx, product).XTenantSlug(tenant).ProductPatch(*patch)
			changed, response, err := update.IdempotencyKey(fmt.Sprintf("price-%d", number)).Execute()
			if response != nil && response.StatusCode == 429 {
				wait(base, response.Header.Get("Retry-After"))
				continue
			}
			check(err)
			if changed.GetUnitPrice() != price {
				panic("another price is stored: " + changed.GetUnitPrice())
			}
			break
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(approved))
}

// wait lets time pass on the sandbox's clock; with a real platform this is time.Sleep.
func wait(base, seconds string) {
	_, err := strconv.Atoi(seconds)
	check(err)
	body := bytes.NewBufferString(`{"advance_s": ` + seconds + `}`)
	response, err := http.Post(base+"/_sandbox/clock", "application/json", body)
	check(err)
	check(response.Body.Close())
}
