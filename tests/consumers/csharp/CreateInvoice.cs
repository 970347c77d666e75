// Creates, lists and updates through a generated client, and is throttled, as its user would write it.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net.Http;
using System.Text;
using Platform.Api;
using Platform.Client;
using Platform.Model;

public static class CreateInvoice
{
    private static readonly string BaseUrl = Given("BASE_URL"), Tenant = Given("TENANT"), Product = Given("PRODUCT");

    public static void Main()
    {
        var settings = new Configuration { BasePath = BaseUrl, AccessToken = Given("API_KEY") };
        var invoices = new InvoicesApi(settings);
        var products = new ProductsApi(settings);

        // Required members are sent only if they are set as properties too: a defect of the generator.
        var line = new Line(Product, 3m, 12.5m) { ProductId = Product, Quantity = 3m, UnitPrice = 12.5m };
        var items = new List<Line> { line, line };
        var customer = Given("CUSTOMER");
        var draft = new Invoice(customer, Currency.EUR, items) { CustomerId = customer, Currency = Currency.EUR, Items = items };
        var made = invoices.CreateInvoice(Tenant, draft, "generated-4");
        if (invoices.ListInvoice(Tenant, 10).Data.All(each => each.Id != made.Id))
            throw new Exception("the list lacks the invoice");
        var approved = invoices.ApproveInvoice(Tenant, made.Id);

        for (var number = 0; number < 60; number++)
            Reprice(products, 123456789012300.6789m + number, $"price-{number}");
        Console.WriteLine(approved.ToJson());
    }

    // The price has more digits than a double holds.
    private static void Reprice(ProductsApi products, decimal price, string key)
    {
        while (true)
        {
            try
            {
                var changed = products.UpdateProduct(Tenant, Product, new ProductPatch(unitPrice: price), key);
                if (changed.UnitPrice != price) throw new Exception($"another price is stored: {changed.UnitPrice}");
                return;
            }
            catch (ApiException refused) when (refused.ErrorCode == 429)
            {
                Wait(int.Parse(refused.Headers["Retry-After"].Single()));
            }
        }
    }

    // Lets time pass on the sandbox's clock; with a real platform this is Thread.Sleep.
    private static void Wait(int seconds)
    {
        using (var client = new HttpClient())
        {
            var body = new StringContent($"{{\"advance_s\": {seconds}}}", Encoding.UTF8, "application/json");
            client.PostAsync(BaseUrl + "/_sandbox/clock", body).GetAwaiter().GetResult().EnsureSuccessStatusCode();
        }
    }

    private static string Given(string name) => Environment.GetEnvironmentVariable(name);
}
