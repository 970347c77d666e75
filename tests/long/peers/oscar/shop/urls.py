"""The addresses of the shop: django-oscar-api, and the status of an order, which it shows and does not change."""

from django.urls import include, path
from oscar.core.loading import get_class, get_model
from oscarapi.permissions import APIAdminPermission
from rest_framework import generics, serializers
from rest_framework.authtoken.views import obtain_auth_token

Order = get_model("order", "Order")
EventHandler = get_class("order.processing", "EventHandler")
InvalidOrderStatus = get_class("order.exceptions", "InvalidOrderStatus")


class OrderStatusSerializer(serializers.ModelSerializer):
    def update(self, order, changes):
        handler = EventHandler(self.context["request"].user)
        if (new := changes.get("status", order.status)) != order.status:
            try:
                handler.handle_order_status_change(order, new)
            except InvalidOrderStatus as error:
                raise serializers.ValidationError({"status": str(error)}) from error
            if new == "Shipped":
                handler.consume_stock_allocations(order)
            else:
                handler.cancel_stock_allocations(order)
        return order

    class Meta:
        model = Order
        fields = ("number", "status")
        read_only_fields = ("number",)


class OrderStatus(generics.RetrieveUpdateAPIView):
    queryset = Order.objects.all()
    serializer_class = OrderStatusSerializer
    permission_classes = (APIAdminPermission,)
    lookup_field = "number"


urlpatterns = [
    path("api/token/", obtain_auth_token),
    path("api/admin/orders/<str:number>/status/", OrderStatus.as_view()),
    path("api/", include("oscarapi.urls")),
]
