// The controller of examples/widgets.py: each Widget has as many ConfigMaps as its size, and an entry in a register.
package main

import (
	"context"
	"fmt"
	"sync"

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
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	finalizer  = "example.com/register"
	ownerIndex = "owner"
	workers    = 4
)

type WidgetSpec struct {
	Size   int    `json:"size"`
	Colour string `json:"colour,omitempty"`
}

type WidgetStatus struct {
	Size               int                `json:"size"`
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
	register sync.Map // in place of a system outside of the cluster
}

func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := client.MergeFromWithOptions(widget.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if !widget.DeletionTimestamp.IsZero() {
		if !controllerutil.RemoveFinalizer(widget, finalizer) {
			return ctrl.Result{}, nil
		}
		r.register.Delete(widget.Name)
		r.recorder.Eventf(widget, nil, corev1.EventTypeNormal, "Removed", "Remove", "Removed from the register")
		return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, widget, before))
	}
	if controllerutil.AddFinalizer(widget, finalizer) {
		if err := r.Patch(ctx, widget, before); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.register.Store(widget.Name, widget.Spec.Size)
	changed, err := r.apply(ctx, widget)
	if err != nil {
		return ctrl.Result{}, err
	}
	if changed {
		r.recorder.Eventf(widget, nil, corev1.EventTypeNormal, "Applied", "Apply", "%d config maps are there", widget.Spec.Size)
	}
	return ctrl.Result{}, r.setStatus(ctx, widget)
}

// apply creates and patches the children, deletes those in excess, and returns whether it changed one.
func (r *Reconciler) apply(ctx context.Context, widget *Widget) (bool, error) {
	wanted, changed := map[string]bool{}, false
	for number := range widget.Spec.Size {
		child := &corev1.ConfigMap{}
		child.Namespace, child.Name = widget.Namespace, fmt.Sprintf("%s-%d", widget.Name, number)
		wanted[child.Name] = true
		result, err := controllerutil.CreateOrPatch(ctx, r.Client, child, func() error {
			child.Data = map[string]string{"colour": widget.Spec.Colour}
			return controllerutil.SetControllerReference(widget, child, r.Scheme())
		})
		if err != nil {
			return changed, err
		}
		changed = changed || result != controllerutil.OperationResultNone
	}
	children := &corev1.ConfigMapList{}
	owned := client.MatchingFields{ownerIndex: string(widget.UID)}
	if err := r.List(ctx, children, client.InNamespace(widget.Namespace), owned); err != nil {
		return changed, err
	}
	for _, child := range children.Items {
		if !wanted[child.Name] {
			if err := r.Delete(ctx, &child, client.Preconditions{UID: &child.UID}); client.IgnoreNotFound(err) != nil {
				return changed, err
			}
			changed = true
		}
	}
	return changed, nil
}

func (r *Reconciler) setStatus(ctx context.Context, widget *Widget) error {
	size, generation := widget.Spec.Size, widget.Generation
	before := client.MergeFromWithOptions(widget.DeepCopy(), client.MergeFromWithOptimisticLock{})
	changed := meta.SetStatusCondition(&widget.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Applied", ObservedGeneration: generation,
		Message: fmt.Sprintf("%d config maps are there", size),
	})
	if !changed && widget.Status.Size == size && widget.Status.ObservedGeneration == generation {
		return nil
	}
	widget.Status.Size, widget.Status.ObservedGeneration = size, generation
	return r.Status().Patch(ctx, widget, before)
}

func ownerOf(child client.Object) []string {
	if owner := metav1.GetControllerOf(child); owner != nil && owner.Kind == "Widget" {
		return []string{string(owner.UID)}
	}
	return nil
}

func addWidgets(ctx context.Context, manager ctrl.Manager, more source.Source, reconciler reconcile.Reconciler) error {
	if err := manager.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, ownerIndex, ownerOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		For(&Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WatchesRawSource(more).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconciler)
}
