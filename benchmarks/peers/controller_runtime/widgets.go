// The Widget controller: each Widget keeps spec.size ConfigMaps.
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	finalizer  = "example.com/cleanup"
	ownerIndex = "owner"
	workers    = 4
)

type WidgetSpec struct {
	Size int `json:"size,omitempty"`
}

type WidgetStatus struct {
	Ready              int                `json:"ready"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec,omitempty"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func newManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, version)
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	options.Scheme = scheme
	return ctrl.NewManager(config, options)
}

type Reconciler struct {
	client.Client
	recorder events.EventRecorder
}

func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := client.MergeFrom(widget.DeepCopy())
	if !widget.DeletionTimestamp.IsZero() {
		if !controllerutil.RemoveFinalizer(widget, finalizer) {
			return ctrl.Result{}, nil
		}
		if err := r.prune(ctx, widget, 0); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, widget, before))
	}
	if controllerutil.AddFinalizer(widget, finalizer) {
		if err := r.Patch(ctx, widget, before); err != nil {
			return ctrl.Result{}, err
		}
	}
	for number := range widget.Spec.Size {
		if err := r.ensure(ctx, widget, fmt.Sprintf("%s-%d", widget.Name, number)); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.prune(ctx, widget, widget.Spec.Size); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.setStatus(ctx, widget)
}

func (r *Reconciler) ensure(ctx context.Context, widget *Widget, name string) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: name}}
	if err := r.Get(ctx, client.ObjectKeyFromObject(child), child); client.IgnoreNotFound(err) != nil || err == nil {
		return err
	}
	child.Data = map[string]string{"widget": widget.Name}
	if err := controllerutil.SetControllerReference(widget, child, r.Scheme()); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(r.Create(ctx, child))
}

// prune deletes the children whose numbers are not below the size.
func (r *Reconciler) prune(ctx context.Context, widget *Widget, size int) error {
	wanted := map[string]bool{}
	for number := range size {
		wanted[fmt.Sprintf("%s-%d", widget.Name, number)] = true
	}
	children := &corev1.ConfigMapList{}
	owned := client.MatchingFields{ownerIndex: string(widget.UID)}
	if err := r.List(ctx, children, client.InNamespace(widget.Namespace), owned); err != nil {
		return err
	}
	for _, child := range children.Items {
		if !wanted[child.Name] {
			if err := r.Delete(ctx, &child); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Reconciler) setStatus(ctx context.Context, widget *Widget) error {
	size, before := widget.Spec.Size, client.MergeFrom(widget.DeepCopy())
	changed := meta.SetStatusCondition(&widget.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Complete", ObservedGeneration: widget.Generation,
		Message: fmt.Sprintf("%d of %d ConfigMaps exist", size, size),
	})
	if !changed && widget.Status.Ready == size && widget.Status.ObservedGeneration == widget.Generation {
		return nil
	}
	widget.Status.Ready, widget.Status.ObservedGeneration = size, widget.Generation
	if err := r.Status().Patch(ctx, widget, before); err != nil {
		return err
	}
	r.recorder.Eventf(widget, nil, corev1.EventTypeNormal, "Complete", "Reconcile", "%d ConfigMaps exist", size)
	return nil
}

func ownerOf(child client.Object) []string {
	if owner := metav1.GetControllerOf(child); owner != nil && owner.Kind == "Widget" {
		return []string{string(owner.UID)}
	}
	return nil
}

func addWidgets(ctx context.Context, manager ctrl.Manager, reconciler reconcile.Reconciler) error {
	if err := manager.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, ownerIndex, ownerOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		For(&Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconciler)
}
